"""A short look at a site for a quote: how many pages it may have and how long they may take."""

import asyncio
import math

import msgspec
import structlog

from accounting import quotes, tenants
from accounting.quotes import Probe, ProbeOrder, Span
from accounting.tenants import Plan
from jobs import scope, urls
from jobs.requests import REQUEST_OF, CrawlRequest
from jobs.scope import Scope
from jobs.urls import Target
from runtime import clock, loops
from runtime.errors import Unavailable
from workers import crawl_parts
from workers.engine import fetch, sitemap
from workers.engine.extract import page as extraction
from workers.engine.extract.page import ExtractOptions
from workers.engine.outcomes import FetchFailed
from workers.engine.sitemap import SitemapLimits
from workers.parts import Parts

log = structlog.get_logger()

LOOK_SECONDS = 2.0
PAGE_SECONDS = 5.0
SITEMAPS = SitemapLimits(max_files=3, max_targets=20_000, timeout_seconds=5.0)
WHOLE_SECONDS = 9.0
"""A look that takes longer is given up: somebody waits for it."""


class Sight(msgspec.Struct, kw_only=True):
    """What has been seen so far; a look that is cut off tells that much."""

    reachable: bool = False
    listed: int = 0
    linked: int = 0
    page_seconds: float = 1.0
    crawl_delay: float = 0.0
    is_unpaced: bool = False
    notes: list[str] = []


class Prober:
    """Takes looks that somebody waits for, one at a time."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._ring = asyncio.Event()

    def ring(self) -> None:
        self._ring.set()

    async def serve(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self._ring.clear()
            try:
                if await self._look_once():
                    continue
            except Unavailable as error:
                log.warning("probe_postponed", why=str(error))
            await loops.wait(self._ring, LOOK_SECONDS)

    async def _look_once(self) -> bool:
        async with self._parts.database.connection() as connection:
            order = await quotes.claim_probe(connection)
        if order is None:
            return False
        found = await look(self._parts, order)
        async with self._parts.database.connection() as connection:
            await quotes.answer_probe(connection, order, found)
        return True


async def look(parts: Parts, order: ProbeOrder) -> Probe:
    """Never raises for what a site does: a site that fails is an answer too."""
    request = msgspec.convert(order.request, REQUEST_OF[order.kind])
    async with parts.database.connection() as connection:
        plan = await tenants.plan_of(connection, order.tenant_id)
    sight = Sight()
    start = urls.parse_target(request.url, policy=crawl_parts.ANYWHERE)
    sight.is_unpaced = crawl_parts.is_unpaced(parts, plan, start)
    try:
        async with asyncio.timeout(WHOLE_SECONDS):
            await _look(parts, request, sight)
    except TimeoutError:
        sight.notes.append("the site is slow: the look was cut off")
    except FetchFailed as failure:
        sight.notes.append(f"the start URL gave no page: {failure.reason}")
    return estimate(request, plan, sight)


async def _look(parts: Parts, request: CrawlRequest, sight: Sight) -> None:
    start = urls.parse_target(request.url, policy=parts.policy)
    rules = await parts.robots.rules_for(start)
    if request.robots == "obey" and not rules.allows(start.url):
        raise FetchFailed(rules.failure or "robots_disallowed")
    sight.crawl_delay = rules.crawl_delay or 0.0
    inside = Scope(
        start,
        request.scope,
        include=scope.compile_patterns(request.include),
        exclude=scope.compile_patterns(request.exclude),
    )
    await _look_at_page(parts, request, inside, start, sight)
    if request.sitemap != "skip":
        findings = await sitemap.discover(
            parts.fetcher, start, rules.sitemaps, policy=parts.policy, limits=SITEMAPS
        )
        sight.listed = sum(inside.exclusion(target) is None for target in findings.targets)
        if findings.truncated:
            sight.notes.append("the sitemaps name more than was counted")


async def _look_at_page(
    parts: Parts, request: CrawlRequest, inside: Scope, start: Target, sight: Sight
) -> None:
    began = clock.monotonic()
    answer = await parts.fetcher.follow(
        start,
        headers=tuple(request.headers.items()),
        timeout_seconds=PAGE_SECONDS,
        limit_bytes=parts.settings.page_bytes_max,
    )
    sight.page_seconds = clock.monotonic() - began
    failure = fetch.status_failure(answer)
    if failure is not None:
        raise failure
    options = ExtractOptions(formats=frozenset({"links"}), policy=parts.policy)
    extracted = await parts.threads.run(
        lambda: extraction.extract_page(
            answer.body,
            content_type=answer.headers.get("content-type"),
            url=answer.url,
            options=options,
        ),
        page_bytes=len(answer.body),
    )
    sight.reachable = True
    canonical = {
        urls.canonical_url(link.target, query=request.query)
        for link in extracted.links
        if inside.exclusion(link.target) is None
    }
    sight.linked = len(canonical)


def estimate(request: CrawlRequest, plan: Plan, sight: Sight) -> Probe:
    """Ranges from what was seen: listed pages are sure, links may lead to as many as asked for."""
    if not sight.reachable:
        nothing = Span(least=0, most=0)
        return Probe(reachable=False, pages=nothing, duration_seconds=nothing, notes=sight.notes)
    linked = 0 if request.sitemap == "only" else sight.linked
    least = min(request.max_pages, max(1, sight.listed, linked))
    most = min(request.max_pages, sight.listed + 1) if not linked else request.max_pages
    asked = 0.0 if sight.is_unpaced else max(plan.host_interval_seconds, sight.crawl_delay)
    interval = max(asked, request.delay_seconds)
    quickest = sight.page_seconds / plan.host_concurrency
    return Probe(
        reachable=True,
        pages=Span(least=least, most=max(least, most)),
        duration_seconds=Span(
            least=math.ceil(least * max(interval, quickest)),
            most=min(
                request.timeout_seconds,
                math.ceil(max(least, most) * max(interval, sight.page_seconds)),
            ),
        ),
        notes=sight.notes,
    )
