"""Cancel, deadline, lost lease, shutdown, crash: what was done stays, nothing else moves."""

import asyncio

import pytest

from accounting import metering
from jobs import runs
from jobs.progress import adds_up
from runtime import loops
from runtime.content import ContentStore
from runtime.database import Database
from runtime.errors import Unavailable
from tests.support import work
from tests.support.site import Site, Visit
from tests.support.workers import ended, run_next, start, submit
from workers.parts import Parts

PAGES = 12


class SlowSite:
    """A site whose pages beyond the first four are answered only when the test says so."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.asked = asyncio.Event()
        self.release = asyncio.Event()
        links = " ".join(f'<a href="/{number}">{number}</a>' for number in range(PAGES))
        site.page("/", f"<html><body>{links}</body></html>")
        for number in range(PAGES):
            site.handle(f"/{number}", self.answer if number >= 4 else self.at_once)

    async def at_once(self, visit: Visit, writer: asyncio.StreamWriter) -> None:
        body = f"<html><body><p>This is page {visit.path}.</p></body></html>".encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    async def answer(self, visit: Visit, writer: asyncio.StreamWriter) -> None:
        self.asked.set()
        await self.release.wait()
        await self.at_once(visit, writer)


@pytest.fixture
def slow(site: Site) -> SlowSite:
    return SlowSite(site)


async def until_four_are_settled(app: Database, tenant_id, job_id, slow: SlowSite) -> None:
    """The start page and four others are committed; the rest hangs at the site."""
    async with asyncio.timeout(30):
        await slow.asked.wait()
        while (await work.status_of(app, tenant_id, job_id)).progress.succeeded < 5:  # noqa: ASYNC110 # a row
            await asyncio.sleep(0.01)


async def test_a_cancel_stops_the_run_and_releases_what_was_not_done(
    app: Database, parts: Parts, slow: SlowSite
) -> None:
    tenant_id, job_id = await submit(app, parts.database, slow.site.url)
    job_run, running = await start(parts)
    await until_four_are_settled(app, tenant_id, job_id, slow)
    async with app.connection() as connection:
        assert await metering.cancel(connection, tenant_id, job_id) == "cancelling"
    asked = len(slow.site.visits)

    job_run.look_now()
    await running
    slow.release.set()

    done = await ended(app, parts, tenant_id, job_id)
    assert (done.job.state, done.job.completion_reason, done.job.partial) == (
        "cancelled",
        "cancelled",
        True,
    )
    assert (done.job.usage.credits_charged, done.job.usage.credits_released) == (5, 45)
    assert sorted(done.outcomes().values()) == ["cancelled"] * 8 + ["succeeded"] * 5
    assert len(slow.site.visits) == asked


async def test_the_deadline_cuts_off_what_is_in_flight_and_keeps_the_rest(
    app: Database, parts: Parts, slow: SlowSite
) -> None:
    tenant_id, job_id = await submit(app, parts.database, slow.site.url)
    job_run, running = await start(parts)
    await until_four_are_settled(app, tenant_id, job_id, slow)

    await work.move_time(parts.database, job_id, deadline_at=6)
    job_run.look_now()
    await running

    done = await ended(app, parts, tenant_id, job_id)
    assert (done.job.state, done.job.completion_reason, done.job.partial) == (
        "succeeded",
        "deadline",
        True,
    )
    assert done.job.usage.credits_charged == 5
    assert sorted(set(done.outcomes().values())) == ["succeeded", "timeout"]
    slow.release.set()


async def test_a_run_that_lost_its_lease_changes_nothing_more(
    app: Database, parts: Parts, slow: SlowSite
) -> None:
    tenant_id, job_id = await submit(app, parts.database, slow.site.url)
    _, running = await start(parts)
    await until_four_are_settled(app, tenant_id, job_id, slow)
    await lose_lease(parts, job_id)
    before = await work.status_of(app, tenant_id, job_id)

    slow.release.set()
    await running

    after = await work.status_of(app, tenant_id, job_id)
    assert (after.progress, after.usage, after.state) == (
        before.progress,
        before.usage,
        "running",
    )
    await run_next(parts)
    done = await ended(app, parts, tenant_id, job_id)
    assert done.job.usage.credits_charged == PAGES + 1
    assert done.job.state == "succeeded"


async def test_a_shutdown_hands_the_job_back_and_nothing_settled_is_asked_for_again(
    app: Database, parts: Parts, slow: SlowSite
) -> None:
    tenant_id, job_id = await submit(app, parts.database, slow.site.url)
    job_run, running = await start(parts)
    await until_four_are_settled(app, tenant_id, job_id, slow)

    job_run.shut_down()
    slow.release.set()
    await running
    handed_back = await work.status_of(app, tenant_id, job_id)
    await run_next(parts)

    done = await ended(app, parts, tenant_id, job_id)
    assert handed_back.state == "running"
    assert handed_back.progress.in_flight == 0
    assert (done.job.state, done.job.usage.credits_charged) == ("succeeded", PAGES + 1)
    assert {
        path: slow.site.paths.count(path) for path in slow.site.paths if path in done_early()
    } == dict.fromkeys(done_early(), 1)


async def test_a_crash_repeats_only_what_was_not_committed(
    app: Database, parts: Parts, slow: SlowSite
) -> None:
    tenant_id, job_id = await submit(app, parts.database, slow.site.url)
    _, running = await start(parts)
    await until_four_are_settled(app, tenant_id, job_id, slow)

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await lose_lease(parts, job_id)
    slow.release.set()
    await run_next(parts)

    done = await ended(app, parts, tenant_id, job_id)
    assert (done.job.state, done.job.usage.credits_charged) == ("succeeded", PAGES + 1)
    assert adds_up(done.job.progress)
    assert [path for path in done_early() if slow.site.paths.count(path) != 1] == []


async def test_a_content_store_that_fails_gives_the_job_back_uncharged(
    app: Database, parts: Parts, slow: SlowSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant_id, job_id = await submit(app, parts.database, slow.site.url)
    slow.release.set()

    async def full(*_: object) -> None:
        raise Unavailable("the content store does not take a segment")

    with monkeypatch.context() as patched:
        patched.setattr(ContentStore, "put", full)
        # As if the store had been away for longer than a run is patient.
        patched.setattr(loops, "FIRST_PAUSE_SECONDS", 3_600.0)
        await run_next(parts)
    handed_back = await work.status_of(app, tenant_id, job_id)
    await run_next(parts)

    done = await ended(app, parts, tenant_id, job_id)
    assert (handed_back.progress.succeeded, handed_back.usage.credits_charged) == (0, 0)
    assert (done.job.state, done.job.usage.credits_charged) == ("succeeded", PAGES + 1)


async def lose_lease(parts: Parts, job_id) -> None:
    await work.move_time(parts.database, job_id, lease_until=5)
    async with parts.database.connection() as connection:
        assert [job for _, job, _ in await runs.free_leases(connection, limit=10)] == [job_id]


def done_early() -> list[str]:
    return ["/", "/0", "/1", "/2", "/3"]
