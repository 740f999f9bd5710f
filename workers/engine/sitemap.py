"""Finds a site's pages in its sitemaps: those robots.txt names, or /sitemap.xml."""

import asyncio
from collections import deque
from collections.abc import Iterable

import msgspec

from jobs import urls
from jobs.addresses import AddressPolicy
from jobs.urls import Target, UrlRefused
from runtime import clock
from workers.engine import fetch, sitemap_parsing
from workers.engine.fetch import Exchange, Fetcher
from workers.engine.outcomes import FetchFailed

GUESSED_PATH = "/sitemap.xml"
MAX_FAILURES = 100


class SitemapLimits(msgspec.Struct, frozen=True, kw_only=True):
    """`max_depth` counts the levels of files: an index of indexes of sitemaps is three."""

    max_files: int = 15
    max_depth: int = 3
    max_addresses_per_file: int = 50_000
    max_bytes_per_file: int = 50 * 1024 * 1024
    max_targets: int = 50_000
    timeout_seconds: float = 10.0
    total_seconds: float = 30.0


class SitemapFindings(msgspec.Struct, frozen=True, kw_only=True):
    """`failures` are (address, reason) of files; `refused` counts addresses that may not be used.

    `truncated` says that a limit left something out.
    """

    targets: tuple[Target, ...]
    truncated: bool
    failures: tuple[tuple[str, str], ...]
    refused: int

    @property
    def urls(self) -> list[str]:
        return [target.url for target in self.targets]


async def discover(
    fetcher: Fetcher,
    start: Target,
    sitemaps_from_robots: Iterable[str],
    *,
    policy: AddressPolicy,
    limits: SitemapLimits,
) -> SitemapFindings:
    """Never raises FetchFailed. Each address is given once, in the order in which it was found."""
    search = _Search(start, policy, limits)
    search.announce(sitemaps_from_robots)
    until = clock.monotonic() + limits.total_seconds
    while (planned := search.next_file(seconds_left=until - clock.monotonic())) is not None:
        try:
            answer = await fetcher.download(
                planned.target,
                timeout_seconds=max(0.1, min(limits.timeout_seconds, until - clock.monotonic())),
                limit_bytes=limits.max_bytes_per_file,
                truncate=True,
            )
            # Some tens of thousands of addresses take half a second: not on the event loop.
            await asyncio.to_thread(search.read, planned, answer)
        except FetchFailed as failure:
            search.note_failure(planned, failure)
    return search.findings()


class _Planned(msgspec.Struct, frozen=True, kw_only=True):
    target: Target
    depth: int
    is_guess: bool = False


class _Search:
    """What was found so far and which files are still to be read."""

    def __init__(self, start: Target, policy: AddressPolicy, limits: SitemapLimits) -> None:
        self._start = start
        self._policy = policy
        self._limits = limits
        self._queue: deque[_Planned] = deque()
        self._planned: set[str] = set()
        self._files = 0
        self._found: dict[str, Target] = {}
        self._failures: list[tuple[str, str]] = []
        self._refused = 0
        self._truncated = False

    def announce(self, addresses: Iterable[str]) -> None:
        for address in addresses:
            self._plan(self._start, address, 1)
        if not self._planned and not self._failures:
            guess = self._resolve(self._start, GUESSED_PATH)
            if guess is not None:
                self._queue.append(_Planned(target=guess, depth=1, is_guess=True))
                self._planned.add(guess.url)

    def next_file(self, *, seconds_left: float) -> _Planned | None:
        if not self._queue:
            return None
        spent = self._files >= self._limits.max_files or self._room() <= 0
        if spent or seconds_left <= 0:
            self._truncated = True
            return None
        self._files += 1
        return self._queue.popleft()

    def read(self, planned: _Planned, answer: Exchange) -> None:
        """Raises FetchFailed for what is no sitemap."""
        failure = fetch.status_failure(answer)
        if failure is not None:
            raise failure
        parsed = sitemap_parsing.parse(
            answer.body,
            max_addresses=self._limits.max_addresses_per_file,
            limit_bytes=self._limits.max_bytes_per_file,
        )
        self._truncated = self._truncated or parsed.truncated
        for address in parsed.pages:
            self._find(answer.url, address)
        for address in parsed.children:
            self._plan(answer.url, address, planned.depth + 1)
        if parsed.malformed:
            raise FetchFailed("unsupported_content_type", message="It is not a whole sitemap.")

    def note_failure(self, planned: _Planned, failure: FetchFailed) -> None:
        # A guess that is wrong is no failure: the site never said that there is a sitemap.
        absent = failure.reason in ("not_found", "unsupported_content_type")
        if not (planned.is_guess and absent):
            self._note(planned.target.url, failure.reason)

    def findings(self) -> SitemapFindings:
        return SitemapFindings(
            targets=tuple(self._found.values()),
            truncated=self._truncated,
            failures=tuple(self._failures),
            refused=self._refused,
        )

    def _room(self) -> int:
        return self._limits.max_targets - len(self._found)

    def _find(self, base: Target, address: str) -> None:
        target = self._resolve(base, address)
        if target is None or target.url in self._found:
            return
        if self._room() <= 0:
            self._truncated = True
            return
        self._found[target.url] = target

    def _plan(self, base: Target, address: str, depth: int) -> None:
        target = self._resolve(base, address)
        if target is None:
            self._note(address[: urls.URL_LIMIT_BYTES], "blocked")
        elif depth > self._limits.max_depth or len(self._planned) >= self._limits.max_files:
            self._truncated = self._truncated or target.url not in self._planned
        elif target.url not in self._planned:
            self._planned.add(target.url)
            self._queue.append(_Planned(target=target, depth=depth))

    def _note(self, address: str, reason: str) -> None:
        if len(self._failures) < MAX_FAILURES:
            self._failures.append((address, reason))

    def _resolve(self, base: Target, address: str) -> Target | None:
        try:
            target = urls.resolve_link(base, address, policy=self._policy)
        except UrlRefused:
            target = None
        if target is None:
            self._refused += 1
        return target
