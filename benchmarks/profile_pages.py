"""Tells where a page's CPU time goes, step by step: python -m benchmarks.profile_pages."""

import argparse
import asyncio
import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvloop

from accounting import metering
from benchmarks import process_cost, whole_system
from jobs import results, runs, urls
from jobs.outcomes import Facts, Found, PageOutcome
from jobs.records import Content
from jobs.runs import Run
from jobs.scope import Scope
from migrations import schema
from runtime import logging, settings
from runtime.embedded.postgres import APP, DATABASE, OWNER, SYSTEM, EmbeddedPostgres
from runtime.embedded.redis import EmbeddedRedis
from runtime.redis import Signals
from tests.support import builders, work
from tests.support.processes import free_port
from tests.support.whole import BenchSite
from workers.__main__ import worker_parts
from workers.engine.discovery import Discovery, Origin
from workers.engine.extract import html, links, main_content, markdown, metadata
from workers.engine.extract.page import Extracted
from workers.engine.fetch import Exchange
from workers.engine.key_set import KeySet
from workers.parts import Parts
from workers.run_job import JobRun

Servers = tuple[EmbeddedPostgres, EmbeddedRedis]

BATCH = 50
TIMEOUT_SECONDS = 30.0
SHOWN = 30
WHOLE = "all of it, as a worker does it"


class Clock:
    """CPU seconds of this process, and of PostgreSQL meanwhile, by the name of a step."""

    def __init__(self, postgres: int) -> None:
        self.own: defaultdict[str, float] = defaultdict(float)
        self.database: defaultdict[str, float] = defaultdict(float)
        self._postgres = postgres

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        database, began = process_cost.cpu_seconds(self._postgres), time.process_time()
        yield
        self.own[name] += time.process_time() - began
        self.database[name] += process_cost.cpu_seconds(self._postgres) - database

    def table(self, pages: int) -> str:
        lines = ["| step | ms of CPU a page | PostgreSQL's |", "| --- | --- | --- |"]
        for name, seconds in self.own.items():
            server = self.database[name] * 1000 / pages
            lines.append(f"| {name} | {seconds * 1000 / pages:.3f} | {server:.2f} |")
        return "\n".join(lines)


class Crawled:
    """One job, crawled batch by batch, with nothing beside a step while it is timed."""

    def __init__(self, parts: Parts, run: Run, clock: Clock) -> None:
        self._parts, self._run, self._clock = parts, run, clock
        start = urls.parse_target(run.request.url, policy=parts.policy)
        self._discovery = Discovery(
            run.request,
            Scope(start, run.request.scope),
            None,
            known=KeySet([urls.url_key(urls.canonical_url(start))]),
            warn=print,
        )

    async def crawl(self) -> None:
        async with self._parts.database.connection() as connection:
            while True:
                with self._clock.step("claim from the frontier"):
                    claims = await runs.claim_pages(
                        connection, self._run.lease, limit=BATCH, by_level=False
                    )
                if not claims:
                    return
                with self._clock.step("fetch"):
                    answers = await asyncio.gather(*(self._fetch(claim.url) for claim in claims))
                pages = self._extract(answers)
                frames = self._pack(pages)
                with self._clock.step("canonical keys, discovery"):
                    found = [f for page in pages for f in await self._new(page)]
                with self._clock.step("write the segment"):
                    await self._parts.store.put(f"bench/{claims[0].page_no}", b"".join(frames))
                outcomes = [
                    _outcome(claim.page_no, answer)
                    for claim, answer in zip(claims, answers, strict=True)
                ]
                with self._clock.step("settle in PostgreSQL"):
                    answer = await metering.settle_pages(
                        connection, self._run.lease, self._run.prices, outcomes, found, Facts()
                    )
                if answer != "settled":
                    raise RuntimeError(answer)

    async def _fetch(self, url: str) -> Exchange:
        return await self._parts.fetcher.follow(
            urls.parse_target(url, policy=self._parts.policy),
            timeout_seconds=TIMEOUT_SECONDS,
            limit_bytes=self._parts.settings.page_bytes_max,
        )

    def _extract(self, answers: list[Exchange]) -> list[Extracted]:
        """What extract_page does, taken apart; links come before what changes the tree."""
        policy, clock = self._parts.policy, self._clock
        with clock.step("parse"):
            trees = [html.parse(answer.body.decode()) for answer in answers]
        with clock.step("links"):
            found = [
                links.find(tree, answer.url, policy=policy).links
                for tree, answer in zip(trees, answers, strict=True)
            ]
        with clock.step("metadata"):
            described = [
                metadata.read(tree, answer.url, policy=policy)
                for tree, answer in zip(trees, answers, strict=True)
            ]
        with clock.step("main content"):
            fragments = [node.html or "" if (node := main_content.reduce(t)) else "" for t in trees]
        with clock.step("Markdown"):
            texts = [
                markdown.from_html(fragment, base_url=answer.url.url)
                for fragment, answer in zip(fragments, answers, strict=True)
            ]
        return [
            Extracted(markdown=text, links=page_links, metadata=page.values)
            for text, page_links, page in zip(texts, found, described, strict=True)
        ]

    def _pack(self, pages: list[Extracted]) -> list[bytes]:
        with self._clock.step("pack (JSON, zstd)"):
            return [
                results.pack(
                    Content(
                        markdown=page.markdown or "",
                        metadata=page.metadata,
                        links=[
                            {"url": link.url, "text": link.text, "rel": link.rel}
                            for link in page.links
                        ],
                    )
                )
                for page in pages
            ]

    async def _new(self, page: Extracted) -> list[Found]:
        origin = Origin(source="link", depth=1, found_on=0)
        return await self._discovery.new_among((link.target for link in page.links), origin)


def _outcome(page_no: int, answer: Exchange) -> PageOutcome:
    return PageOutcome(
        page_no=page_no,
        status="succeeded",
        final_url=answer.url.url,
        http_status=answer.status,
        content_type=answer.headers["content-type"],
        bytes=len(answer.body),
        segment="bench",
        segment_offset=0,
        segment_length=1,
    )


@asynccontextmanager
async def worker(place: Path, servers: Servers) -> AsyncGenerator[Parts]:
    """The parts of a worker process, in this one."""
    postgres, redis = servers
    chosen = settings.load(
        {
            "PAGETOLL_DATABASE_URL": postgres.url(APP, DATABASE),
            "PAGETOLL_SYSTEM_DATABASE_URL": postgres.url(SYSTEM, DATABASE),
            "PAGETOLL_REDIS_URL": redis.url,
            "PAGETOLL_DATA_DIR": str(place),
            "PAGETOLL_ALLOW_NETWORKS": "127.0.0.0/8",
            "PAGETOLL_LOG_LEVEL": "warning",
        }
    )
    logging.configure(chosen, process="profile")
    async with worker_parts(chosen, Signals(redis.url)) as parts:
        yield parts


async def a_run(parts: Parts, url: str, pages: int) -> Run:
    tenant = await builders.a_tenant(parts.database, credits=pages)
    await builders.a_job(
        parts.database,
        tenant.tenant_id,
        url=url,
        max_pages=pages,
        robots="ignore",
        sitemap="skip",
        timeout_seconds=3_600,
    )
    return await work.claim(parts.database, lease_seconds=3_600)


async def measure(place: Path, servers: Servers, url: str, pages: int) -> Clock:
    """The steps one by one, then a whole run as a worker does it, both over all pages."""
    clock = Clock(servers[0].pid or 0)
    async with worker(place, servers) as parts:
        await Crawled(parts, await a_run(parts, url, pages), clock).crawl()
        run = await a_run(parts, url, pages)
        with clock.step(WHOLE):
            await JobRun(parts, run).run()
    return clock


async def profile(place: Path, servers: Servers, url: str, pages: int) -> None:
    """The functions of the event loop's thread that a whole run spends most in."""
    profiler = cProfile.Profile()
    async with worker(place, servers) as parts:
        run = await a_run(parts, url, pages)
        profiler.enable()
        await JobRun(parts, run).run()
        profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(SHOWN)


@contextmanager
def running_servers(place: Path) -> Iterator[Servers]:
    postgres, redis = EmbeddedPostgres(place), EmbeddedRedis(place)
    try:
        postgres.start()
        redis.start()
        schema.upgrade(postgres.url(OWNER, DATABASE))
        yield postgres, redis
    finally:
        redis.stop()
        postgres.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile_pages", description=__doc__)
    parser.add_argument("--pages", type=int, default=2_000, help="pages of the site (2000)")
    parser.add_argument("--functions", action="store_true", help="list the costliest functions")
    chosen = parser.parse_args()
    with whole_system.folder() as place:
        site = BenchSite(place, free_port(), chosen.pages, "plain")
        with site.serving(), running_servers(place / "data") as servers:
            work_on = (place / "data", servers, f"{site.base}/", chosen.pages)
            print(uvloop.run(measure(*work_on)).table(chosen.pages))
            if chosen.functions:
                uvloop.run(profile(*work_on))


if __name__ == "__main__":
    main()
