"""Puts one run's crawl together from its request, its plan and what earlier runs have left."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from ipaddress import ip_address

import msgspec

from accounting.tenants import Plan
from jobs import results, runs, scope, urls
from jobs.addresses import AddressPolicy
from jobs.outcomes import Facts
from jobs.requests import JobRequest
from jobs.runs import Run
from jobs.scope import Scope
from jobs.urls import Target
from workers.engine import discovery, politeness, sitemap
from workers.engine.crawl import Crawl
from workers.engine.discovery import Discovery, Origin
from workers.engine.key_set import KeySet
from workers.engine.politeness import HostPace, Pacing
from workers.engine.robots import RobotsCache
from workers.engine.sitemap import SitemapLimits
from workers.engine.visit import Visitor, VisitParts
from workers.job_frontier import JobFrontier
from workers.kinds import KINDS
from workers.page_sink import PageSink
from workers.parts import Parts
from workers.stop_signal import StopSignal

SITEMAP_LIMITS = SitemapLimits()
ANYWHERE = AddressPolicy.of(["0.0.0.0/0", "::/0"])
"""Only for reading a start URL; what is fetched is asked of the real policy."""


class RunParts(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its loop, its sink, and what it knows of URLs."""

    crawl: Crawl
    sink: PageSink
    discovery: Discovery
    start: Target


async def assemble(
    parts: Parts, run: Run, plan: Plan, sink: PageSink, stop: StopSignal
) -> RunParts:
    """Reads what earlier runs have committed; the crawl goes on from there."""
    request, kind = run.request, KINDS[run.kind]
    robots = parts.robots if request.robots == "obey" else None
    start = urls.parse_target(request.url, policy=ANYWHERE)
    async with parts.database.connection() as connection:
        known = await _key_set(runs.known_keys(connection, run.lease))
        known_content = await _key_set(runs.known_content(connection, run.lease))
    found = Discovery(request, _scope(request, start), robots, known=known, warn=sink.tell)
    pacing = _pacing(parts, run, plan, robots)
    concurrency = _concurrency(parts, plan, request, start)
    frontier = JobFrontier(
        parts.database,
        run,
        by_level=discovery.is_by_level(request),
        ahead=concurrency,
        patience_seconds=parts.settings.lease_seconds,
    )
    visit_parts = VisitParts(
        fetcher=parts.fetcher,
        pacing=pacing,
        discovery=found,
        policy=parts.policy,
        threads=parts.threads,
        pack=results.pack,
        was_left_out=frontier.was_left_out,
        start=start,
        page_bytes_max=parts.settings.page_bytes_max,
        follow_links=kind.follows_links(request),
    )
    visitor = Visitor(request, visit_parts, known_content=known_content)
    crawl = Crawl(
        frontier,
        sink,
        visitor.visit,
        concurrency=concurrency,
        stop=stop.event,
        begin_no_more=pacing.close,
    )
    sink.refill(frontier)
    sink.call_after_settling(crawl.look_again)
    return RunParts(crawl=crawl, sink=sink, discovery=found, start=start)


async def _key_set(keys: AsyncGenerator[bytes]) -> KeySet:
    kept = KeySet()
    async with aclosing(keys):
        async for key in keys:
            kept.add(key)
    return kept


async def read_sitemaps(parts: Parts, run: Run, made: RunParts) -> None:
    """Settles what the site's sitemaps name; doing it again after a crash finds nothing new."""
    request = run.request
    if not KINDS[run.kind].uses_sitemaps(request):
        return
    rules = await parts.robots.rules_for(made.start)
    guess = f"{made.start.origin}{sitemap.GUESSED_PATH}"
    if request.robots == "obey" and not (rules.sitemaps or rules.allows(guess)):
        return
    await made.sink.settle_found([], Facts(phase="sitemap"))
    findings = await sitemap.discover(
        parts.fetcher, made.start, rules.sitemaps, policy=parts.policy, limits=SITEMAP_LIMITS
    )
    for address, reason in findings.failures:
        made.discovery.warn_once("source_failed", f"a sitemap could not be read: {reason}", address)
    if findings.truncated:
        made.discovery.warn_once("discovery_truncated", "the sitemaps name more than is followed")
    found = await made.discovery.new_among(findings.targets, Origin(source="sitemap", depth=0))
    await made.sink.settle_found(found, Facts(phase="crawling"))


def _pacing(parts: Parts, run: Run, plan: Plan, robots: RobotsCache | None) -> Pacing:
    pace = HostPace(
        interval_seconds=plan.host_interval_seconds,
        concurrency=plan.host_concurrency,
    )
    return Pacing(
        parts.gate,
        pace,
        robots,
        delay_seconds=run.request.delay_seconds,
        is_unpaced=lambda target: is_unpaced(parts, plan, target),
        share=politeness.share_of(str(run.lease.tenant_id), pages_per_second=plan.pages_per_second),
    )


def _scope(request: JobRequest, start: Target) -> Scope:
    return Scope(
        start,
        request.scope,
        include=scope.compile_patterns(request.include),
        exclude=scope.compile_patterns(request.exclude),
    )


def _concurrency(parts: Parts, plan: Plan, request: JobRequest, start: Target) -> int:
    """Slots beyond what the one host of a crawl bears would only wait at its gate."""
    wanted = request.max_concurrency or parts.settings.job_concurrency
    slots = min(wanted, parts.settings.job_concurrency)
    if request.scope in {"host", "path"} and not is_unpaced(parts, plan, start):
        return min(slots, plan.host_concurrency)
    return slots


def is_unpaced(parts: Parts, plan: Plan, target: Target) -> bool:
    """A machine of the operator's own, under a plan that lets nothing hold it back."""
    if not plan.unpaced_allowed_networks:
        return False
    if target.host == "localhost":
        return bool(parts.settings.networks)
    try:
        address = ip_address(target.host)
    except ValueError:
        return False
    return any(address in network for network in parts.settings.networks)
