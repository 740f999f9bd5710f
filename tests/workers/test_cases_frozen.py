"""Complaints about workers that were frozen: they wake up to a job that is not theirs."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jobs import runs
from runtime.database import Database
from tests.support import work
from tests.support.processes import OwnProcess
from tests.support.site import Site, Visit, html
from tests.support.workers import submit
from workers.parts import Parts

LINKS = [f"/{number}" for number in range(4)]


class HangingSite:
    """Its start page is answered; the pages behind it hang until the test says so."""

    def __init__(self, site: Site) -> None:
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


@pytest.fixture
def worker(parts: Parts, tmp_path: Path) -> Iterator[OwnProcess]:
    chosen = msgspec.structs.replace(parts.settings, log_format="json", drain_seconds=2.0)
    process = OwnProcess("workers", chosen, log=tmp_path / "worker.log")
    yield process
    process.stop()


@pytest.mark.slow
async def test_a_frozen_worker_that_wakes_up_charges_nothing_and_leaves_the_job_alone(
    app: Database, parts: Parts, site: Site, worker: OwnProcess
) -> None:
    hanging = HangingSite(site)
    tenant_id, job_id = await submit(app, parts.database, site.url)
    worker.start()
    async with asyncio.timeout(60):
        await hanging.asked.wait()
    os.kill(worker.process.pid, signal.SIGSTOP)
    await work.move_time(parts.database, job_id, lease_until=5)
    async with parts.database.connection() as connection:
        assert [job for _, job, _ in await runs.free_leases(connection, limit=10)] == [job_id]
    newer = await work.claim(parts.database)
    claims = await work.pages(parts.database, newer)
    before = await work.status_of(app, tenant_id, job_id)

    hanging.release.set()
    os.kill(worker.process.pid, signal.SIGCONT)
    (line,) = await asyncio.to_thread(worker.logged, '"run_ended"')

    assert '"lease_lost"' in line
    after = await work.status_of(app, tenant_id, job_id)
    assert (after.state, after.progress, after.usage) == ("running", before.progress, before.usage)
    outcomes = [work.ok(claim.page_no) for claim in claims]
    assert await work.settle(parts.database, newer, outcomes) == "settled"
    charged = (await work.status_of(app, tenant_id, job_id)).usage.credits_charged
    assert charged == len(LINKS) + 1
