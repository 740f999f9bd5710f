"""A worker's loop: woken at once, by any of its three chances, and stopped without loss."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from arq.worker import Worker

from jobs.queue import Bell
from runtime.database import Database
from runtime.redis import Signals
from tests.support import work
from tests.support.site import Site, html
from tests.support.workers import submit
from workers import runner, tasks
from workers.parts import Parts
from workers.runner import Runner


@asynccontextmanager
async def serving(parts: Parts, signals: Signals, *, arq: bool = False) -> AsyncIterator[Runner]:
    stop = asyncio.Event()
    made = Runner(parts, signals)
    running = [asyncio.create_task(made.serve(stop))]
    if arq:
        running.append(asyncio.create_task(tasks.serve(signals.url, made, stop)))
    yield made
    stop.set()
    async with asyncio.timeout(30):
        await asyncio.gather(*running)


async def final(app: Database, tenant_id, job_id):
    async with asyncio.timeout(30):
        while True:
            job = await work.status_of(app, tenant_id, job_id)
            if job.finished_at is not None:
                return job
            await asyncio.sleep(0.01)


@pytest.fixture
async def signals(parts: Parts) -> AsyncIterator[Signals]:
    made = Signals(parts.settings.redis_url)
    await made.client.flushall()
    yield made
    await made.close()


@pytest.fixture
def never_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a ring no job would be found within the test's time."""
    monkeypatch.setattr(runner, "LOOK_SECONDS", 3_600.0)


@pytest.mark.usefixtures("never_looks")
async def test_a_hint_wakes_a_free_slot(
    app: Database, parts: Parts, site: Site, signals: Signals
) -> None:
    site.page("/", html())
    bell = Bell(signals, arq=False)
    async with serving(parts, signals):
        await until_heard(signals)
        tenant_id, job_id = await submit(app, parts.database, site.url)
        await bell.ring(job_id)

        job = await final(app, tenant_id, job_id)

    assert job.usage.credits_charged == 1


@pytest.mark.usefixtures("never_looks")
async def test_arq_wakes_a_worker_that_missed_the_hint(
    app: Database, parts: Parts, site: Site, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.page("/", html())
    bell = Bell(signals, arq=True)
    tenant_id, job_id = await submit(app, parts.database, site.url)

    async def deaf(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Runner, "_listen", deaf)
    monkeypatch.setattr(Runner, "_claim", claiming_only_when_rung(Runner._claim))
    async with serving(parts, signals, arq=True):
        await bell.ring(job_id)
        job = await final(app, tenant_id, job_id)

    assert job.state == "succeeded"
    assert await signals.client.zcard("pagetoll:arq") == 0
    await bell.close()


async def test_without_any_ring_a_free_slot_looks_by_itself(
    app: Database, parts: Parts, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LOOK_SECONDS", 0.01)
    site.page("/", html())
    nowhere = Signals("unix:///nonexistent/pagetoll.sock")
    async with serving(parts, nowhere):
        tenant_id, job_id = await submit(app, parts.database, site.url)
        job = await final(app, tenant_id, job_id)

    assert job.state == "succeeded"
    await nowhere.close()


async def test_a_worker_runs_no_more_jobs_than_it_has_slots(
    app: Database, parts: Parts, site: Site, signals: Signals
) -> None:
    release = asyncio.Event()

    async def wait(_visit: object, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    site.handle("/", wait)
    made = [await submit(app, parts.database, site.url) for _ in range(6)]
    async with serving(parts, signals) as worker:
        async with asyncio.timeout(30):
            while len(worker._running) < parts.settings.worker_slots:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        states = [(await work.status_of(app, *job)).state for job in made]
        release.set()
        ended = [await final(app, *job) for job in made]

    assert states.count("running") == parts.settings.worker_slots == 4
    assert {job.state for job in ended} == {"failed"}


async def test_a_stopping_worker_hands_its_jobs_back(
    app: Database, parts: Parts, site: Site, signals: Signals
) -> None:
    asked = asyncio.Event()

    async def hang(*_: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    site.handle("/", hang)
    tenant_id, job_id = await submit(app, parts.database, site.url)
    async with serving(parts, signals):
        async with asyncio.timeout(30):
            await asked.wait()

    job = await work.status_of(app, tenant_id, job_id)
    assert (job.state, job.progress.queued, job.progress.in_flight) == ("running", 1, 0)
    assert (await work.claim(parts.database)).lease.job_id == job_id


def claiming_only_when_rung(claim):
    """Drops the first look of a worker that starts, so that only a ring can find the job."""
    looked = False

    async def second_time(self: Runner) -> bool:
        nonlocal looked
        if not looked:
            looked = True
            return False
        return await claim(self)

    return second_time


async def until_heard(signals: Signals, *, by: int = 1) -> None:
    """So many workers have subscribed: a hint published now is heard."""
    async with asyncio.timeout(30):
        while await signals.client.publish("pagetoll:bell", "nobody") < by:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_worker_stops_when_arq_swallows_the_cancellation(
    parts: Parts, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    polled = asyncio.Event()
    swallowed: list[bool] = []
    polls = Worker._poll_iteration

    async def swallowing(self: Worker) -> None:
        polled.set()
        try:
            await asyncio.Event().wait() if not swallowed else await polls(self)
        except asyncio.CancelledError:
            if swallowed:
                raise
            swallowed.append(True)

    monkeypatch.setattr(Worker, "_poll_iteration", swallowing)
    async with serving(parts, signals, arq=True):
        await polled.wait()

    assert swallowed == [True]


@pytest.mark.usefixtures("never_looks")
async def test_what_a_stopping_worker_hands_back_is_gone_on_with_at_once(
    app: Database, parts: Parts, site: Site, signals: Signals
) -> None:
    """The other worker has a free slot, and looks at nothing before it is rung."""
    asked = asyncio.Event()

    async def hang(*_: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    site.handle("/", hang)
    tenant_id, job_id = await submit(app, parts.database, site.url)
    async with AsyncExitStack() as other:
        async with serving(parts, signals):
            await asked.wait()
            await other.enter_async_context(serving(parts, Signals(signals.url)))
            await until_heard(signals, by=2)
            site.page("/", html())

        job = await final(app, tenant_id, job_id)

    assert (job.state, job.usage.credits_charged) == ("succeeded", 1)


async def test_a_job_that_only_newer_code_understands_is_left_to_it(
    app: Database, parts: Parts, site: Site, signals: Signals
) -> None:
    site.page("/", html())
    newer = await submit(app, parts.database, site.url)
    async with parts.database.connection() as connection:
        await connection.execute(
            """UPDATE job SET request = request || '{"of_tomorrow": 1}' WHERE job_id = $1""",
            newer[1],
        )
    known = await submit(app, parts.database, site.url)

    async with serving(parts, signals):
        job = await final(app, *known)

    left = await work.status_of(app, *newer)
    assert (job.state, left.state, left.usage.credits_charged) == ("succeeded", "running", 0)
