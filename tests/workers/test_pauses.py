"""A paused run: what is in flight finishes, nothing is begun, the job goes on later."""

import asyncio

import pytest

from accounting import metering
from jobs import controls
from jobs.requests import Extension
from runtime.database import Database
from tests.support import builders, work
from tests.support.site import Site, Visit, html
from tests.support.workers import ended, run_next, start, submit
from workers.parts import Parts

LINKS = [f"/{number}" for number in range(8)]


class HeldSite:
    """Its start page is answered; the pages behind it are when the test says so."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.asked = asyncio.Event()
        self.release = asyncio.Event()
        site.page("/", html(*LINKS))
        for link in LINKS:
            site.handle(link, self.answer)

    async def answer(self, visit: Visit, writer: asyncio.StreamWriter) -> None:
        self.asked.set()
        await self.release.wait()
        body = html(title=visit.path).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    def paths(self) -> list[str]:
        return [visit.path for visit in self.site.visits if visit.path in LINKS]


@pytest.fixture
def held(site: Site) -> HeldSite:
    return HeldSite(site)


async def paused_run(app: Database, parts: Parts, held: HeldSite):
    """A job that was asked to pause while two pages are in flight, and its run."""
    tenant_id, job_id = await submit(app, parts.database, held.site.url, max_concurrency=2)
    job_run, running = await start(parts)
    async with asyncio.timeout(30):
        await held.asked.wait()
        while len(held.paths()) < 2:  # noqa: ASYNC110 # what a site was asked
            await asyncio.sleep(0.01)
    async with app.connection() as connection:
        assert await controls.pause(connection, tenant_id, job_id) == "pausing"
    job_run.look_now()
    return tenant_id, job_id, job_run, running


async def test_pages_in_flight_finish_and_the_rest_waits(
    app: Database, parts: Parts, held: HeldSite
) -> None:
    tenant_id, job_id, job_run, running = await paused_run(app, parts, held)
    await job_run._stop.event.wait()
    held.release.set()
    await running

    job = await work.status_of(app, tenant_id, job_id)
    assert (job.state, job.progress.succeeded, job.progress.in_flight) == ("paused", 3, 0)
    assert len(held.paths()) == 2

    async with app.connection() as connection:
        await controls.resume(connection, tenant_id, job_id)
    await run_next(parts)

    done = await ended(app, parts, tenant_id, job_id)
    assert (done.job.state, done.job.usage.credits_charged) == ("succeeded", 9)
    assert sorted(held.paths()) == sorted(LINKS)


async def test_a_cancel_cuts_a_pause_short(app: Database, parts: Parts, held: HeldSite) -> None:
    tenant_id, job_id, job_run, running = await paused_run(app, parts, held)
    await job_run._stop.event.wait()
    async with app.connection() as connection:
        await metering.cancel(connection, tenant_id, job_id)
    job_run.look_now()
    await running

    job = await work.status_of(app, tenant_id, job_id)
    assert (job.state, job.usage.credits_charged) == ("cancelled", 1)
    held.release.set()


async def test_the_deadline_cuts_a_pause_short(app: Database, parts: Parts, held: HeldSite) -> None:
    tenant_id, job_id, job_run, running = await paused_run(app, parts, held)
    await job_run._stop.event.wait()
    await work.move_time(parts.database, job_id, deadline_at=6)
    job_run.look_now()
    await running

    job = await work.status_of(app, tenant_id, job_id)
    assert (job.state, job.completion_reason) == ("succeeded", "deadline")
    held.release.set()


async def test_a_job_without_credits_waits_and_goes_on(
    app: Database, parts: Parts, site: Site
) -> None:
    links = [f"/{number}" for number in range(120)]
    site.page("/", html(*links))
    for link in links:
        site.page(link, html(title=link))
    tenant = await builders.a_tenant(parts.database, credits=100)
    job_id = await builders.a_job(
        app,
        tenant.tenant_id,
        url=site.url,
        max_pages=300,
        reservation="rolling",
        when_out_of_credits="pause",
    )
    await run_next(parts)
    job = await work.status_of(app, tenant.tenant_id, job_id)
    assert (job.state, job.pause_reason, job.usage.credits_charged) == ("paused", "budget", 100)

    await builders.a_grant(parts.database, tenant.tenant_id, 200)
    async with parts.database.connection() as connection:
        await metering.resume_funded(connection, limit=10)
    await run_next(parts)

    job = await work.status_of(app, tenant.tenant_id, job_id)
    assert (job.state, job.completion_reason) == ("succeeded", "frontier_exhausted")
    assert job.usage.credits_charged == 121


async def test_an_extended_job_fetches_what_the_limit_had_kept_out(
    app: Database, parts: Parts, held: HeldSite
) -> None:
    tenant_id, job_id = await submit(app, parts.database, held.site.url, max_pages=4)
    _, running = await start(parts)
    async with asyncio.timeout(30):
        await held.asked.wait()
    async with app.connection() as connection:
        await metering.extend(connection, tenant_id, job_id, Extension(max_pages=20))
    held.release.set()
    await running
    if (await work.status_of(app, tenant_id, job_id)).state == "running":
        await run_next(parts)

    done = await ended(app, parts, tenant_id, job_id)
    assert (done.job.completion_reason, done.job.usage.credits_charged) == ("frontier_exhausted", 9)
    assert sorted(held.paths()) == sorted(LINKS)


async def test_pages_that_wait_for_their_turn_are_not_begun(
    app: Database, parts: Parts, site: Site
) -> None:
    """A delay of a minute is between any two pages: only the first has been asked for."""
    site.page("/", html("/a", "/b", "/c"))
    tenant_id, job_id = await submit(
        app, parts.database, site.url, delay_seconds=60, sitemap="skip", robots="ignore"
    )
    job_run, running = await start(parts)
    async with asyncio.timeout(30):
        while (await work.status_of(app, tenant_id, job_id)).progress.in_flight < 3:  # noqa: ASYNC110 # a row
            await asyncio.sleep(0.01)
    async with app.connection() as connection:
        assert await controls.pause(connection, tenant_id, job_id) == "pausing"
    job_run.look_now()
    async with asyncio.timeout(10):
        await running

    job = await work.status_of(app, tenant_id, job_id)
    assert (job.state, job.progress.succeeded, job.progress.queued) == ("paused", 1, 3)
    assert site.paths == ["/"]
