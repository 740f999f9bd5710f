"""Which of the URLs that a page or a sitemap names are new, and which of them are admitted."""

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from jobs import urls
from jobs.outcomes import Found
from jobs.records import JobWarning
from jobs.requests import CrawlRequest
from jobs.scope import Scope
from jobs.urls import Target
from jobs.vocabulary import Reason, WarningCode
from workers.engine.key_set import KeySet
from workers.engine.outcomes import FetchFailed
from workers.engine.robots import RobotsCache

KNOWN_BEYOND_PAGES = 100_000
LISTED_PER_PAGE = 20
"""Together they bound what a job remembers: 20 URLs for each page it may have, and some more."""
KNOWN_MAX = 2_000_000
"""At most 96 MB of keys; a job that may have more pages than half of it remembers two a page."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where URLs were found."""

    source: Literal["link", "sitemap"]
    depth: int
    found_on: int | None = None


class Discovery:
    """What a job knows of URLs: the keys it has met, and the rules that decide on new ones."""

    def __init__(
        self,
        request: CrawlRequest,
        scope: Scope,
        robots: RobotsCache | None,
        *,
        known: KeySet,
        warn: Callable[[JobWarning], None],
    ) -> None:
        """`robots` None admits whatever robots.txt says; `known` holds keys of earlier runs."""
        self._warn = warn
        self._warned: set[str] = set()
        self._request = request
        self._scope = scope
        self._robots = robots
        self._known = known
        self._known_max = known_max(request.max_pages)
        self._deepest = _deepest(request)
        self.round_limit_met = False

    def key(self, target: Target) -> bytes:
        return urls.url_key(self.canonical(target))

    def canonical(self, target: Target) -> str:
        return urls.canonical_url(target, query=self._request.query)

    def is_known(self, key: bytes) -> bool:
        return key in self._known

    def remember(self, key: bytes) -> None:
        self._known.add(key)

    async def new_among(self, targets: Iterable[Target], origin: Origin) -> list[Found]:
        """The URLs met for the first time, in order, each with the reason that keeps it out."""
        found = []
        for target in targets:
            canonical = self.canonical(target)
            key = urls.url_key(canonical)
            if key in self._known:
                continue
            if len(self._known) >= self._known_max:
                self.warn_once(
                    "discovery_truncated", "the site names more URLs than a job of this size keeps"
                )
                break
            self._known.add(key)
            found.append(
                Found(
                    key=key.hex(),
                    url=canonical,
                    depth=origin.depth,
                    source=origin.source,
                    found_on=origin.found_on,
                    excluded=await self._exclusion(target, origin.depth),
                )
            )
        return found

    async def hop_exclusion(self, target: Target, *, is_start: bool) -> Reason | None:
        """Why a redirect must not be followed; the patterns do not bind the start URL."""
        within = self._scope.matches(target)["within_boundary"]
        if not within or (not is_start and self._scope.exclusion(target)):
            return "out_of_scope"
        return None if await self._robots_allow(target) else "robots_disallowed"

    async def robots_failure(self, target: Target) -> FetchFailed | None:
        """Why robots.txt keeps an admitted URL from being fetched now."""
        if self._robots is None:
            return None
        rules = await self._robots.rules_for(target)
        if rules.unreachable:
            self._warn_of(target, rules.reason)
            return FetchFailed(rules.failure, rules.failure_detail or None)
        return None if rules.allows(target.url) else FetchFailed("robots_disallowed")

    def warn_once(self, code: WarningCode, message: str, source: str | None = None) -> None:
        if f"{code} {source}" not in self._warned:
            self._warned.add(f"{code} {source}")
            self._warn(JobWarning(code=code, message=message, source_id=source))

    async def _robots_allow(self, target: Target) -> bool:
        if self._robots is None:
            return True
        rules = await self._robots.rules_for(target)
        if rules.unreachable:
            self._warn_of(target, rules.reason)
        return rules.allows(target.url)

    def _warn_of(self, target: Target, why: str) -> None:
        self.warn_once("source_failed", why, target.origin)

    async def _exclusion(self, target: Target, depth: int) -> Reason | None:
        if self._scope.exclusion(target):
            return "out_of_scope"
        if depth > self._deepest:
            self.round_limit_met = self.round_limit_met or self._is_beyond_rounds(depth)
            return "limit_reached"
        return None if await self._robots_allow(target) else "robots_disallowed"

    def _is_beyond_rounds(self, depth: int) -> bool:
        return self._request.max_rounds is not None and depth >= self._request.max_rounds


def known_max(max_pages: int) -> int:
    """How many URLs a job of that size remembers; what a site names beyond them is not met."""
    wanted = LISTED_PER_PAGE * max_pages + KNOWN_BEYOND_PAGES
    return min(wanted, max(KNOWN_MAX, 2 * max_pages))


def _deepest(request: CrawlRequest) -> int:
    """The deepest level that is admitted; a round is one level, and the first is level 0."""
    levels = [1_000_000]
    if request.max_depth is not None:
        levels.append(request.max_depth)
    if request.max_rounds is not None:
        levels.append(request.max_rounds - 1)
    return min(levels)


def is_by_level(request: CrawlRequest) -> bool:
    """Whether depths must be exact, so that a level is finished before the next begins."""
    return request.max_depth is not None or request.max_rounds is not None
