"""The bell: heard at once, by arq too, and never missed by a submit when Redis is away."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from jobs import queue
from jobs.queue import Bell
from runtime import ids
from runtime.database import Database
from runtime.embedded.redis import EmbeddedRedis
from runtime.redis import Signals
from tests.support import builders, work


@pytest_asyncio.fixture
async def signals(redis_server: EmbeddedRedis) -> AsyncIterator[Signals]:
    made = Signals(redis_server.url)
    await made.client.flushall()
    yield made
    await made.close()


async def test_a_ring_is_heard_at_once(signals: Signals) -> None:
    bell = Bell(signals, arq=False)
    job_id = ids.new_id()
    async with signals.listen([queue.BELL]) as hints:
        await bell.ring(job_id)
        async with asyncio.timeout(10):
            heard = await anext(hints)

    assert heard == (queue.BELL, str(job_id))
    await bell.close()


async def test_a_ring_waits_in_arq_as_plain_json(signals: Signals) -> None:
    bell = Bell(signals, arq=True)
    await bell.ring(ids.new_id())

    (arq_id,) = await signals.client.zrange(queue.ARQ_QUEUE, 0, -1)
    stored = await signals.client.get(b"arq:job:" + arq_id)

    assert stored.startswith(b'{"t"')
    await bell.close()


async def test_without_redis_a_ring_is_only_lost() -> None:
    nowhere = Signals("unix:///nonexistent/pagetoll.sock")
    bell = Bell(nowhere, arq=True)

    await bell.ring(ids.new_id())
    await bell.control(ids.new_id())

    await bell.close()
    await nowhere.close()


async def test_jobs_nobody_rang_for_are_found_and_then_left_for_a_while(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    job_id = await builders.a_job(app, tenant.tenant_id)

    async def unrung() -> list:
        async with system.connection() as connection:
            return await queue.unrung(connection, seconds=5, limit=10)

    assert await unrung() == []
    await work.move_time(system, job_id, created_at=1)
    assert await unrung() == [job_id]
    assert await unrung() == []
    await work.move_time(system, job_id, rung_at=1)
    assert await unrung() == [job_id]


async def test_what_waits_is_counted(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    first = await builders.a_job(app, tenant.tenant_id)
    await builders.a_job(app, tenant.tenant_id)
    await work.claim(system)
    await work.move_time(system, first, created_at=2)

    async with system.connection() as connection:
        waiting = await queue.waiting(connection)

    assert (waiting.queued, waiting.running) == (1, 1)
    assert waiting.oldest_seconds == pytest.approx(0, abs=30)
