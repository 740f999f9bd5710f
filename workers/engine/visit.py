"""One page from its URL to its outcome: gate, fetch, duplicates, extraction, new links."""

import hashlib
from collections.abc import Awaitable, Callable

import msgspec
import structlog

from jobs import urls
from jobs.addresses import AddressPolicy
from jobs.outcomes import Found, PageOutcome
from jobs.records import Content
from jobs.requests import CrawlRequest
from jobs.urls import Target, UrlRefused
from jobs.vocabulary import PageStatus
from runtime import clock
from workers.engine import fetch
from workers.engine.discovery import Discovery, Origin
from workers.engine.extract import page as extraction
from workers.engine.extract.page import Extracted, ExtractOptions
from workers.engine.fetch import Exchange, Fetcher
from workers.engine.key_set import KeySet
from workers.engine.outcomes import FetchFailed
from workers.engine.page_threads import PageThreads
from workers.engine.politeness import Pacing

log = structlog.get_logger()

SKIPPED_REASONS = frozenset(
    {"duplicate", "out_of_scope", "robots_disallowed", "unsupported_content_type"}
)
"""What we chose not to deliver; every other reason is a failure."""
TITLE_CHARACTERS_MAX = 1_000


class PageTask(msgspec.Struct, frozen=True, kw_only=True):
    """An admitted URL to fetch now."""

    page_no: int
    url: str
    depth: int
    is_start: bool


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """A finished page: its outcome, its packed content, the URLs it discovered."""

    outcome: PageOutcome
    content: bytes | None = None
    found: list[Found] = []


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    """What the thread makes of a body."""

    extracted: Extracted
    content: bytes


class VisitParts(msgspec.Struct, frozen=True, kw_only=True):
    """What visits of one job go through; `pack` runs in one of `threads`.

    `was_left_out` tells of a known key whether only a limit of the job kept its URL out.
    """

    fetcher: Fetcher
    pacing: Pacing
    discovery: Discovery
    policy: AddressPolicy
    threads: PageThreads
    pack: Callable[[Content], bytes]
    was_left_out: Callable[[bytes], Awaitable[bool]]
    start: Target
    page_bytes_max: int
    follow_links: bool


class Visitor:
    """Fetches pages of one job; `known_content` holds hashes of bodies that it has already."""

    def __init__(self, request: CrawlRequest, parts: VisitParts, *, known_content: KeySet) -> None:
        self._request = request
        self._parts = parts
        self._discovery = parts.discovery
        self._known_content = known_content
        self._headers = tuple(request.headers.items())
        self._options = ExtractOptions(
            formats=frozenset(request.formats),
            only_main_content=request.only_main_content,
            policy=parts.policy,
        )

    async def visit(self, task: PageTask) -> Visit:
        """Never raises for what a site does: every end of a page is an outcome."""
        began = clock.monotonic()
        try:
            visit = await self._visit(task)
        except FetchFailed as failure:
            visit = Visit(outcome=_failed(task, failure))
        except Exception:
            # A fault of ours on one page must not end the job; the log has it whole.
            log.exception("page_visit_failed", page_no=task.page_no)
            visit = Visit(outcome=_failed(task, FetchFailed("internal_error")))
        spent = round((clock.monotonic() - began) * 1000)
        return msgspec.structs.replace(
            visit,
            outcome=msgspec.structs.replace(
                visit.outcome, duration_ms=spent, fetched_at=clock.now()
            ),
        )

    async def _visit(self, task: PageTask) -> Visit:
        try:
            target = urls.parse_target(task.url, policy=self._parts.policy)
        except UrlRefused as refused:
            raise FetchFailed(refused.code, message=refused.message) from refused
        forbidden = await self._discovery.robots_failure(target)
        if forbidden is not None:
            raise forbidden
        aliases: list[Target] = []
        try:
            visit = await self._read(task, await self._fetch(task, target, aliases))
        except FetchFailed as failure:
            where = aliases[-1].url if aliases else None
            visit = Visit(outcome=_failed(task, failure, final_url=where))
        return msgspec.structs.replace(visit, found=visit.found + self._as_found(task, aliases))

    async def _fetch(self, task: PageTask, target: Target, aliases: list[Target]) -> Exchange:
        own_key = self._discovery.key(target)

        async def on_hop(hop: Target) -> None:
            excluded = await self._discovery.hop_exclusion(hop, is_start=task.is_start)
            if excluded:
                raise FetchFailed(excluded, f"redirected to {hop.url}"[:500])
            key = self._discovery.key(hop)
            if key != own_key:
                if self._discovery.is_known(key) and not await self._parts.was_left_out(key):
                    raise FetchFailed("duplicate", f"redirected to {hop.url}"[:500])
                self._discovery.remember(key)
                aliases.append(hop)
            await self._parts.pacing.wait(hop)

        async with self._parts.pacing.turn(target):
            return await self._parts.fetcher.follow(
                target,
                on_hop=on_hop,
                headers=self._headers_for(target),
                timeout_seconds=self._request.page_timeout_seconds,
                limit_bytes=self._parts.page_bytes_max,
            )

    def _headers_for(self, target: Target) -> tuple[tuple[str, str], ...]:
        """The customer's headers may hold secrets: they go to the start URL's origin alone."""
        return self._headers if target.origin == self._parts.start.origin else ()

    async def _read(self, task: PageTask, answer: Exchange) -> Visit:
        failure = fetch.status_failure(answer)
        if failure is None and not answer.body_read:
            failure = FetchFailed("unsupported_content_type")
        content_hash = hashlib.blake2b(answer.body, digest_size=16).digest()
        if failure is None and content_hash in self._known_content:
            failure = FetchFailed("duplicate", "same_content")
        if failure is not None:
            return Visit(outcome=_failed(task, failure, answer=answer))
        self._known_content.add(content_hash)
        try:
            made = await self._parts.threads.run(
                lambda: self._make(answer), page_bytes=len(answer.body)
            )
        except FetchFailed as failed:
            self._known_content.discard(content_hash)
            return Visit(outcome=_failed(task, failed, answer=answer))
        found = await self._discover(task, made.extracted)
        outcome = _outcome(task, "succeeded", answer)
        return Visit(
            outcome=msgspec.structs.replace(
                outcome,
                title=(made.extracted.title or "")[:TITLE_CHARACTERS_MAX] or None,
                content_hash=content_hash.hex(),
                outcome="page",
            ),
            content=made.content,
            found=found,
        )

    def _make(self, answer: Exchange) -> _Page:
        """Runs in a thread: parsing, conversion and compression free the interpreter's lock."""
        extracted = extraction.extract_page(
            answer.body,
            content_type=answer.headers.get("content-type"),
            url=answer.url,
            options=self._options,
        )
        return _Page(extracted=extracted, content=self._parts.pack(self._kept(extracted)))

    def _kept(self, extracted: Extracted) -> Content:
        kept: dict[str, object] = {}
        for name in self._request.formats:
            value = getattr(extracted, name)
            if name == "links":
                value = [
                    {"url": link.url, "text": link.text, "rel": link.rel}
                    for link in extracted.links
                ]
            if value is not None:
                kept[name] = value
        return Content(**kept)  # type: ignore[arg-type] # each format has its field's type

    async def _discover(self, task: PageTask, extracted: Extracted) -> list[Found]:
        if not self._parts.follow_links:
            return []
        origin = Origin(source="link", depth=task.depth + 1, found_on=task.page_no)
        return await self._discovery.new_among((link.target for link in extracted.links), origin)

    def _as_found(self, task: PageTask, aliases: list[Target]) -> list[Found]:
        """Where redirects led: discovered, and not admitted, as this page stands for it."""
        return [
            Found(
                key=self._discovery.key(alias).hex(),
                url=self._discovery.canonical(alias),
                depth=task.depth,
                source="link",
                found_on=task.page_no,
                excluded="duplicate",
            )
            for alias in aliases
        ]


def _outcome(task: PageTask, status: PageStatus, answer: Exchange) -> PageOutcome:
    return PageOutcome(
        page_no=task.page_no,
        status=status,
        final_url=answer.url.url,
        http_status=answer.status,
        content_type=answer.headers.get("content-type", "")[:200] or None,
        bytes=len(answer.body),
    )


def _failed(
    task: PageTask,
    failure: FetchFailed,
    *,
    answer: Exchange | None = None,
    final_url: str | None = None,
) -> PageOutcome:
    status: PageStatus = "skipped" if failure.reason in SKIPPED_REASONS else "failed"
    outcome = (
        PageOutcome(page_no=task.page_no, status=status, final_url=final_url)
        if answer is None
        else _outcome(task, status, answer)
    )
    return msgspec.structs.replace(outcome, reason=failure.reason, detail=failure.detail)
