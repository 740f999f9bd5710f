"""Complaints about holds that leak: a run may break anywhere, and its hold is closed once."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import asynccontextmanager
from typing import Any, Literal
from uuid import UUID

import msgspec
import pytest

from jobs import runs
from jobs.progress import adds_up
from jobs.records import Job
from runtime import loops
from runtime.database import Connection, Database
from runtime.errors import Unavailable
from runtime.redis import Signals
from tests.support import builders, work
from tests.support.processes import free_port
from tests.support.site import Site, html
from tests.support.workers import run_next, submit
from workers.heartbeat import Heartbeat
from workers.parts import Parts
from workers.run_job import JobRun
from workers.runner import Runner
from workers.stop_signal import StopSignal

PAGES = 3
ENOUGH = 1_000
"""No run waits or calls so often."""


class CutOff:
    """Awaits a run, and cancels it where it waits for the n-th time."""

    def __init__(self, run: Coroutine[Any, Any, bool], *, at: int) -> None:
        self.run = run
        self.at = at
        self.waits = 0

    def __await__(self) -> Generator[Any, Any, bool]:
        waits = self.run.__await__()
        step, value = waits.send, None
        while True:
            try:
                waited_for = step(value)
            except StopIteration as end:
                return end.value
            self.waits += 1
            if self.waits == self.at:
                asyncio.current_task().cancel()
            try:
                step, value = waits.send, (yield waited_for)
            except BaseException as error:  # noqa: BLE001 # handed on to whoever waits
                step, value = waits.throw, error


class Faulty(Database):
    """The pool of another, whose n-th use fails before its call, or after it was made."""

    def __init__(
        self, whole: Database, error: Exception, *, at: int, when: Literal["before", "after"]
    ) -> None:
        super().__init__(whole.url, role=whole.role, size=whole.size)
        self._pool = whole._pool
        self.error = error
        self.at = at
        self.when = when
        self.uses = 0

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        self.uses += 1
        fails = self.uses == self.at
        if fails and self.when == "before":
            raise self.error
        async with super().connection() as connection:
            yield connection
        if fails:
            raise self.error


def three_pages(site: Site) -> None:
    site.page("/", html("/a", "/b", title="Home"))
    site.page("/a", html(title="A"))
    site.page("/b", html(title="B"))


async def in_the_end(app: Database, parts: Parts, tenant_id: UUID, job_id: UUID) -> Job:
    """The job once whoever looks after broken runs has done so."""
    job = await work.status_of(app, tenant_id, job_id)
    if job.finished_at is None:
        await work.move_time(parts.database, job_id, lease_until=5)
        async with parts.database.connection() as connection:
            await runs.free_leases(connection, limit=10)
        await run_next(parts)
        job = await work.status_of(app, tenant_id, job_id)
    assert adds_up(job.progress)
    assert job.finished_at is not None
    assert not job.usage.settlement_pending
    assert job.usage.credits_charged == job.progress.succeeded
    assert (await builders.balance_of(parts.database, tenant_id)).held == 0
    return job


@pytest.mark.slow
async def test_wherever_a_run_is_cut_off_its_pages_are_charged_once_and_its_hold_is_closed(
    app: Database, parts: Parts, site: Site
) -> None:
    three_pages(site)
    for at in range(1, ENOUGH):
        tenant_id, job_id = await submit(app, parts.database, site.url)
        run = JobRun(parts, await work.claim(parts.database))
        cut = CutOff(run.run(), at=at)

        async def wait_for(cut: CutOff = cut) -> None:
            await cut

        await asyncio.gather(asyncio.create_task(wait_for()), return_exceptions=True)

        job = await in_the_end(app, parts, tenant_id, job_id)
        assert (job.state, job.usage.credits_charged) == ("succeeded", PAGES), at
        if cut.waits < at:
            break
    assert 10 < at < ENOUGH - 1


@pytest.mark.slow
async def test_whichever_call_of_the_database_fails_the_hold_is_closed_in_the_end(
    app: Database, parts: Parts, site: Site
) -> None:
    three_pages(site)
    for at in range(1, ENOUGH):
        tenant_id, job_id = await submit(app, parts.database, site.url)
        fault = RuntimeError("a fault of a test")
        faulty = Faulty(parts.database, fault, at=at, when="before")
        broken = msgspec.structs.replace(parts, database=faulty)
        await JobRun(broken, await work.claim(parts.database)).run()

        job = await in_the_end(app, parts, tenant_id, job_id)
        assert job.usage.credits_charged <= PAGES, at
        if faulty.uses < at:
            break
    assert 5 < at < ENOUGH - 1
    assert job.usage.credits_charged == PAGES


@pytest.mark.slow
@pytest.mark.parametrize(("when", "given_back_at_most"), [("before", 2), ("after", 4)])
async def test_whichever_answer_is_lost_the_call_is_repeated_and_its_outcome_never_guessed(
    app: Database,
    parts: Parts,
    site: Site,
    when: Literal["before", "after"],
    given_back_at_most: int,
) -> None:
    """Whether the call was made or not: the run cannot know.

    What a run gives back is what it reads before it begins, and claims of pages that were made.
    """
    three_pages(site)
    given_back = 0
    for at in range(1, ENOUGH):
        tenant_id, job_id = await submit(app, parts.database, site.url)
        faulty = Faulty(parts.database, Unavailable("the answer is lost"), at=at, when=when)
        broken = msgspec.structs.replace(parts, database=faulty)
        await JobRun(broken, await work.claim(parts.database)).run()
        run_ended = await work.status_of(app, tenant_id, job_id)
        given_back += run_ended.finished_at is None

        job = await in_the_end(app, parts, tenant_id, job_id)
        assert (job.state, job.usage.credits_charged) == ("succeeded", PAGES), at
        if faulty.uses < at:
            break
    assert 5 < at < ENOUGH - 1
    assert given_back <= given_back_at_most


async def test_twenty_jobs_that_fail_leave_no_hold_open(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/500", status=500)
    site.page("/404", status=404)
    site.raw("/broken", b"nothing of HTTP\r\n\r\n")
    site.page("/pdf", b"%PDF-1.4", content_type="application/pdf")
    nobody = f"http://127.0.0.1:{free_port()}/"
    starts = [site.url + path for path in ("/500", "/404", "/broken", "/pdf")] + [nobody]
    tenant = await builders.a_tenant(parts.database, credits=1_000)
    made = [
        await builders.a_job(app, tenant.tenant_id, url=url, max_pages=50) for url in starts * 4
    ]
    assert (await builders.balance_of(parts.database, tenant.tenant_id)).available == 0

    for _ in made:
        await run_next(parts)

    jobs = [await work.status_of(app, tenant.tenant_id, job_id) for job_id in made]
    assert {(job.state, job.usage.credits_charged) for job in jobs} == {("failed", 0)}
    assert not any(job.usage.settlement_pending for job in jobs)
    balance = await builders.balance_of(parts.database, tenant.tenant_id)
    assert (balance.available, balance.held) == (1_000, 0)


async def test_an_owner_is_random_for_each_start(parts: Parts) -> None:
    """A worker that starts again under the same name keeps no job of its former self."""
    signals = Signals(parts.settings.redis_url)
    owners = {Runner(parts, signals).owner for _ in range(20)}
    await signals.close()

    assert len(owners) == 20


async def test_a_lease_is_renewed_three_times_before_it_would_end(
    app: Database, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    await submit(app, parts.database, "http://127.0.0.1/")
    run = await work.claim(parts.database)
    stop = StopSignal()
    waited = []

    async def wait(_: asyncio.Event, seconds: float) -> bool:
        waited.append(seconds)
        if len(waited) == 3:
            stop.set("deadline")
        return False

    monkeypatch.setattr(loops, "wait", wait)
    await Heartbeat(parts.database, run.lease, stop, lease_seconds=30.0).beat(300.0)

    assert waited == [10.0] * 3
