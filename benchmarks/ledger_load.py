"""Drives one tenant's jobs through their whole life, as many workers at once would."""

import asyncio
import statistics
from collections.abc import Sequence
from uuid import UUID

import msgspec

from accounting import metering, pricing, reserving, tenants
from accounting.metering import Flush
from accounting.pricing import Terms
from accounting.reserve_groups import ReserveGroups
from accounting.reserving import Seed, Submission
from jobs import runs, urls
from jobs.outcomes import Facts, Found, PageOutcome
from jobs.requests import CrawlRequest
from jobs.runs import Claim, Run
from runtime import clock, ids
from runtime.database import Connection, Database
from tests.support import builders

CREDITS = 1_000_000_000_000
KEY_ID = "benchkey0000"
START = "https://example.com/"


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of load: pages a flush, pages a job, jobs of each worker, one failure in so many."""

    batch: int
    pages: int = 500
    jobs: int = 4
    workers: int = 4
    fails_every: int = 0


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """What a load gave: charged pages, wall seconds, and each step's times in milliseconds."""

    charged: int
    seconds: float
    steps: dict[str, list[float]]

    @property
    def charged_a_second(self) -> float:
        return self.charged / self.seconds

    def percentile(self, step: str, percent: int) -> float:
        times = self.steps[step]
        return statistics.quantiles(times, n=100)[percent - 1] if len(times) > 1 else times[0]


class Watch:
    """Times calls by the name of their step."""

    def __init__(self) -> None:
        self.steps: dict[str, list[float]] = {}
        self._times: list[float] = []
        self._began = 0.0

    def __call__(self, step: str) -> "Watch":
        self._times = self.steps.setdefault(step, [])
        return self

    def __enter__(self) -> None:
        self._began = clock.monotonic()

    def __exit__(self, *_: object) -> None:
        self._times.append((clock.monotonic() - self._began) * 1000)


async def a_tenant(system: Database) -> UUID:
    """A tenant of a plan that permits all workers at once, with credits for every run."""
    async with system.connection() as connection:
        plan = next(one for one in await tenants.plans(connection) if one.plan_id == "local")
        plan = msgspec.structs.replace(plan, plan_id="bench", running_jobs=10_000)
        await tenants.put_plan(connection, plan)
    tenant = await builders.a_tenant(system, credits=CREDITS, plan="bench")
    return tenant.tenant_id


async def terms(system: Database, max_pages: int) -> Terms:
    async with system.connection() as connection:
        book = await pricing.current(connection)
    return pricing.terms(CrawlRequest(url=START, max_pages=max_pages), book)


def submission(tenant_id: UUID, pages: int) -> Submission:
    return Submission(
        tenant_id=tenant_id,
        job_id=ids.new_id(),
        key_id=KEY_ID,
        request=CrawlRequest(url=START, max_pages=pages),
        seeds=[Seed(url=START, key=urls.url_key(START).hex())],
    )


async def whole_lives(system: Database, tenant_id: UUID, mix: Mix) -> Life:
    """Every job reserved, claimed, discovered, claimed by pages, settled and finished."""
    agreed = await terms(system, mix.pages)
    links = [
        Found(key=urls.url_key(url).hex(), url=url, depth=1, source="link", found_on=0)
        for url in (f"{START}{number}" for number in range(1, mix.pages))
    ]
    watches = [Watch() for _ in range(mix.workers)]
    began = clock.monotonic()
    charged = await asyncio.gather(
        *(_worker(system, tenant_id, agreed, mix, links, watch) for watch in watches)
    )
    seconds = clock.monotonic() - began
    steps: dict[str, list[float]] = {}
    for watch in watches:
        for step, times in watch.steps.items():
            steps.setdefault(step, []).extend(times)
    return Life(charged=sum(charged), seconds=seconds, steps=steps)


async def _worker(
    system: Database, tenant_id: UUID, agreed: Terms, mix: Mix, links: Sequence[Found], watch: Watch
) -> int:
    async with system.connection() as connection:
        charged = 0
        for _ in range(mix.jobs):
            with watch("reserve"):
                await reserving.enqueue(connection, submission(tenant_id, mix.pages), agreed)
            with watch("claim job"):
                run = await runs.claim_job(connection, "bench", lease_seconds=600)
            assert run is not None
            charged += await _run_job(connection, run, mix, links, watch)
            with watch("finish"):
                assert await metering.finish(connection, run.lease, "page_limit") == "finished"
    return charged


async def _run_job(
    connection: Connection, run: Run, mix: Mix, links: Sequence[Found], watch: Watch
) -> int:
    """Discovery stays one batch ahead; each flush claims the next batch, as a worker's does."""
    known, charged, settled = 0, 0, 0
    done: list[PageOutcome] = []
    while settled < mix.pages:
        found = links[known : known + mix.batch]
        known += len(found)
        flush = Flush(outcomes=done, found=found, facts=Facts())
        with watch("flush"):
            flushed = await metering.settle_and_claim(
                connection, run.lease, run.prices, flush, take=mix.batch
            )
        assert flushed.answer == "settled"
        settled += len(done)
        charged += sum(one.status == "succeeded" for one in done)
        done = [outcome(claim, mix.fails_every) for claim in flushed.claims]
    return charged


def outcome(claim: Claim, fails_every: int) -> PageOutcome:
    """As a worker reports it, with everything that a stored page carries."""
    if fails_every and claim.page_no % fails_every == 0:
        return PageOutcome(
            page_no=claim.page_no, status="failed", reason="not_found", http_status=404
        )
    return PageOutcome(
        page_no=claim.page_no,
        status="succeeded",
        final_url=claim.url,
        http_status=200,
        content_type="text/html; charset=utf-8",
        title=f"Page {claim.page_no} of a site that is read by a benchmark",
        bytes=23_400,
        duration_ms=35,
        fetched_at=clock.now(),
        content_hash=ids.digest(claim.url).hex(),
        segment="1-0123456789abcdef",
        segment_offset=claim.page_no * 4_000,
        segment_length=4_000,
    )


async def hot_reserves(
    system: Database, tenant_id: UUID, *, callers: int, seconds: float
) -> tuple[float, list[float]]:
    """Reserves a second by so many callers at once, as a gateway makes them, on one tenant's row.

    And each one's milliseconds.
    """
    agreed = await terms(system, 10)
    groups = ReserveGroups(system, seconds=seconds)
    began = clock.monotonic()
    times: list[float] = []

    async def caller() -> None:
        while clock.monotonic() < began + seconds:
            start = clock.monotonic()
            await groups.enqueue(submission(tenant_id, 10), agreed)
            times.append((clock.monotonic() - start) * 1000)

    await asyncio.gather(*(caller() for _ in range(callers)))
    await groups.close()
    return len(times) / (clock.monotonic() - began), times
