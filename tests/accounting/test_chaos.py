"""Work goes on while PostgreSQL's sessions are killed: nothing lost, nothing counted twice."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

import pytest
import pytest_asyncio

from accounting import lots, metering, pricing, reserving
from accounting.lots import Grant
from accounting.reserving import InsufficientCredits
from jobs import runs
from jobs.outcomes import Facts
from jobs.runs import Run
from runtime import database, ids
from runtime.database import Connection, Database
from runtime.embedded.postgres import EmbeddedPostgres
from tests.support import builders, work
from tests.support.database import DatabaseUrls

T = TypeVar("T")

IS_LONG = os.environ.get("PAGETOLL_TEST_LONG") == "1"
SEED = random.randrange(2**32) if IS_LONG else 20_260_117
TASKS = 8
OPERATIONS = 300 if IS_LONG else 25
CALLS_A_KILL = 3
PATIENCE_SECONDS = 60.0
KILL_ONE = """
SELECT count(pg_terminate_backend(pid)) FROM (
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = $1
    ORDER BY state <> 'active', random() LIMIT 1) AS one
"""


class Crowd:
    """Tasks on one tenant, and the sums of the replies that they got."""

    def __init__(self, pool: Database, killer: Connection, tenant_id: UUID) -> None:
        self.pool, self.killer, self.tenant_id = pool, killer, tenant_id
        self.random = random.Random(SEED)
        self.calls: asyncio.Queue[None] = asyncio.Queue()
        self.granted = self.reserved = self.kills = 0
        self.charged: list[tuple[UUID, int]] = []

    async def repeat(self, call: Callable[[Connection], Awaitable[T]]) -> T:
        self.calls.put_nowait(None)
        return await self.pool.repeat(call, seconds=PATIENCE_SECONDS)

    async def kill(self) -> None:
        """One session for every few calls, one that is at work if there is one."""
        while True:
            for _ in range(CALLS_A_KILL):
                await self.calls.get()
            self.kills += await self.killer.fetchval(KILL_ONE, self.pool.role)

    async def task(self) -> None:
        for _ in range(OPERATIONS):
            await self.random.choice([self.grant, self.submit, self.submit, self.live, self.live])()

    async def grant(self) -> None:
        wanted = Grant(amount=self.random.randint(1, 50), source="grant", op_key=str(ids.new_id()))
        await self.repeat(lambda connection: lots.grant(connection, self.tenant_id, wanted))
        self.granted += wanted.amount

    async def submit(self) -> None:
        submission = builders.a_submission(
            self.tenant_id,
            max_pages=self.random.randint(1, 30),
            idempotency_key=self.random.choice([None, str(ids.new_id())]),
        )
        agreed = pricing.terms(submission.request, await self.repeat(pricing.current))
        try:
            made = await self.repeat(
                lambda connection: reserving.enqueue(connection, submission, agreed)
            )
        except InsufficientCredits:
            return
        assert made.job_id == submission.job_id
        assert not made.replayed
        self.reserved += made.credits_reserved

    async def live(self) -> None:
        """A job's whole life; only this task has its lease, so each answer is known before."""
        run = await self.repeat(
            lambda connection: runs.claim_job(connection, "w", lease_seconds=3_600)
        )
        if run is None:
            return
        found = [work.link(number) for number in range(self.random.randint(0, 12))]
        assert await self.settle(run, [], found) == "settled"
        for _ in range(3):
            claims = await self.repeat(
                lambda connection: runs.claim_pages(connection, run.lease, limit=5, by_level=False)
            )
            ends = [
                self.random.choice([work.ok, work.ok, work.failed])(claim.page_no)
                for claim in claims
            ]
            assert await self.settle(run, ends, []) == "settled"
            self.charged += [
                (run.lease.job_id, end.page_no) for end in ends if end.status == "succeeded"
            ]
        await self.end(run)

    async def settle(self, run: Run, ends: list[Any], found: list[Any]) -> str:
        return await self.repeat(
            lambda connection: metering.settle_pages(
                connection, run.lease, run.prices, ends, found, Facts()
            )
        )

    async def end(self, run: Run) -> None:
        job_id = run.lease.job_id
        if self.random.random() < 0.3:
            await self.repeat(lambda one: metering.cancel(one, self.tenant_id, job_id))
            assert await self.settle(run, [work.ok(0)], []) == "cancelled"
        answer = await self.repeat(lambda one: metering.finish(one, run.lease, "page_limit"))
        assert answer in {"finished", "already"}


@pytest_asyncio.fixture
async def crowd(
    database_urls: DatabaseUrls, system: Database, postgres_server: EmbeddedPostgres
) -> AsyncIterator[Crowd]:
    tenant = await builders.a_tenant(system, credits=500, plan=(await a_wide_plan(system)))
    pool = Database(f"{database_urls.system}", role=database.SYSTEM, size=TASKS)
    await pool.open()
    name = database_urls.system.split("@/")[1].split("?")[0]
    killer = await database.connect(postgres_server.url(database=name))
    yield Crowd(pool, killer, tenant.tenant_id)
    await killer.close()
    await pool.close()


async def a_wide_plan(system: Database) -> str:
    return (await builders.a_plan(system, running_jobs=10_000)).plan_id


@pytest.mark.slow
@pytest.mark.timeout(3_600 if IS_LONG else 300)
async def test_killed_sessions_lose_nothing_and_repeat_nothing(
    crowd: Crowd, system: Database
) -> None:
    print(f"seed {SEED}")
    killing = asyncio.ensure_future(crowd.kill())
    await asyncio.gather(*(crowd.task() for _ in range(TASKS)))
    killing.cancel()
    await asyncio.gather(killing, return_exceptions=True)

    await work.end_all(system)
    balance = await builders.balance_of(system, crowd.tenant_id)
    async with system.snapshot() as snapshot:
        reserved = await snapshot.fetchval(
            "SELECT sum(amount) FROM transfer WHERE kind = 'reserve'"
        )
        paid = await snapshot.fetch("SELECT job_id, page_no FROM page WHERE credits > 0")
    assert crowd.kills > TASKS
    assert balance.granted == crowd.granted + 500
    assert reserved == crowd.reserved
    assert sorted(crowd.charged) == sorted((row["job_id"], row["page_no"]) for row in paid)
    assert balance.charged_lifetime == len(crowd.charged) == len(set(crowd.charged))
    assert balance.held == 0
    assert balance.available == balance.granted - balance.charged_lifetime
    assert await work.violations(system) == []
