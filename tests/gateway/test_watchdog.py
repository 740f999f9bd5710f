"""The queue limit, deadlines, dead runs and unheard jobs, with no worker alive."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest_asyncio

from gateway.watchdog import Watchdog
from jobs import queue, status
from jobs.queue import Bell
from jobs.records import Job
from runtime.database import Database
from runtime.embedded.redis import EmbeddedRedis
from runtime.redis import Signals
from tests.gateway.conftest import Client
from tests.support import builders


@pytest_asyncio.fixture(loop_scope="session")
async def signals(redis_server: EmbeddedRedis) -> AsyncIterator[Signals]:
    made = Signals(redis_server.url)
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def watchdog(system: Database, signals: Signals) -> AsyncIterator[Watchdog]:
    bell = Bell(signals, arq=True)
    yield Watchdog(system, bell)
    await bell.close()


async def move_back(system: Database, job_id: UUID, *columns: str) -> None:
    """As if an hour had passed for these times of a job."""
    moved = ", ".join(f"{column} = {column} - interval '1 hour'" for column in columns)
    async with system.transaction() as tx:
        await tx.execute(f"UPDATE job SET {moved} WHERE job_id = $1", job_id)


async def read(system: Database, tenant_id: UUID, job_id: UUID) -> Job:
    async with system.connection() as connection:
        return await status.read(connection, tenant_id, job_id)


async def test_a_job_nobody_starts_fails_word_for_word_and_costs_nothing(
    system: Database, watchdog: Watchdog
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, tenant.tenant_id)
    await watchdog.run_once()
    assert (await read(system, tenant.tenant_id, job_id)).state == "queued"

    await move_back(system, job_id, "created_at", "queue_limit_at", "deadline_at")
    assert await watchdog.end_overdue() == 1

    job = await read(system, tenant.tenant_id, job_id)
    assert (job.state, job.completion_reason) == ("failed", "deadline")
    assert job.error is not None
    assert job.error.reason == "timeout"
    assert job.error.message == "job was not started within the 30-minute queue limit"
    assert (job.usage.credits_charged, job.usage.credits_released) == (0, 10)
    assert job.usage.settlement_pending is False
    balance = await builders.balance_of(system, tenant.tenant_id)
    assert (balance.available, balance.held, balance.charged_lifetime) == (100, 0, 0)
    assert await watchdog.end_overdue() == 0


async def test_a_run_beyond_its_deadline_is_ended_and_told(
    system: Database, watchdog: Watchdog, signals: Signals
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, tenant.tenant_id, max_pages=3)
    async with system.connection() as connection:
        run = await builders.claimed(connection, job_id)
        await builders.finished_pages(connection, run, ["succeeded", "failed"])
    await move_back(system, job_id, "deadline_at")
    async with signals.listen([queue.CONTROL]) as hints:
        assert await watchdog.end_overdue() == 1
        assert await anext(hints) == (queue.CONTROL, str(job_id))
    job = await read(system, tenant.tenant_id, job_id)
    assert (job.state, job.partial, job.completion_reason) == ("succeeded", True, "deadline")
    assert (job.usage.credits_charged, job.usage.settlement_pending) == (1, False)


async def test_a_dead_runs_lease_is_freed_and_its_job_rung_for(
    system: Database, watchdog: Watchdog, signals: Signals
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, tenant.tenant_id)
    async with system.connection() as connection:
        await builders.claimed(connection, job_id)
    assert await watchdog.free_leases() == 0
    await move_back(system, job_id, "lease_until")
    async with signals.listen([queue.BELL]) as hints:
        assert await watchdog.free_leases() == 1
        assert await anext(hints) == (queue.BELL, str(job_id))
    async with system.connection() as connection:
        again = await builders.claimed(connection, job_id)
    assert again.lease.token > 1


async def test_a_job_unheard_is_rung_for_again_once(
    system: Database, watchdog: Watchdog, signals: Signals
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, tenant.tenant_id)
    assert await watchdog.ring_again() == 0
    await move_back(system, job_id, "created_at")
    async with signals.listen([queue.BELL]) as hints:
        assert await watchdog.ring_again() == 1
        assert await anext(hints) == (queue.BELL, str(job_id))
    assert await watchdog.ring_again() == 0


async def test_the_gateway_itself_enforces_the_queue_limit(
    system: Database, client: Client
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    job_id = await builders.a_job(system, tenant.tenant_id)
    await move_back(system, job_id, "created_at", "queue_limit_at", "deadline_at")
    while (job := (await mine.get(f"/v1/jobs/{job_id}")).json())["state"] == "queued":
        pass
    assert job["error"]["message"] == "job was not started within the 30-minute queue limit"
    assert (await mine.get("/v1/credits")).json()["available"] == 100

    assert 'pagetoll_jobs_overdue_total{reason="deadline"} 1.0' in (await mine.get("/metrics")).text
