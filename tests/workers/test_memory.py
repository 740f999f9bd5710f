"""No page and no job, however large, takes the memory of a real worker with it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from runtime.database import Database
from tests.support import work
from tests.support.processes import OwnProcess
from tests.support.site import Site, html
from tests.support.workers import ended, submit
from workers.engine.extract import parse_cost
from workers.parts import Parts

MIB = 1024 * 1024
PEAK_BYTES = 400 * MIB
BASE_BYTES = 100 * MIB
PAGE_BYTES = 10 * MIB
KNOWN_URLS = 300_000
LIST_URLS = """
INSERT INTO excluded_url (tenant_id, job_id, url_key, url, depth, reason)
SELECT $1, $2, uuid_send(gen_random_uuid()), 'https://known.example/' || number, 1, 'out_of_scope'
FROM generate_series(1, $3) AS number
"""


@pytest.fixture
def worker(parts: Parts, tmp_path: Path) -> Iterator[OwnProcess]:
    chosen = msgspec.structs.replace(parts.settings, log_format="json", drain_seconds=2.0)
    process = OwnProcess("workers", chosen, log=tmp_path / "worker.log")
    yield process
    process.stop()


def peak_bytes(process: OwnProcess) -> int:
    """What the process had at most in memory until now."""
    for line in Path(f"/proc/{process.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("Linux tells VmHWM of a living process")


async def run_to_the_end(worker: OwnProcess) -> int:
    """Starts the worker, waits for the end of its run, and tells the peak of its memory."""
    worker.start()
    await asyncio.to_thread(worker.logged, '"run_ended"')
    return peak_bytes(worker)


def a_site_of_huge_pages(site: Site) -> None:
    """As many links, tags or words as a page has room for, and more than is read."""
    link = b'<a href="/%07d">x</a>'
    links = b"".join(link % number for number in range(PAGE_BYTES // len(link % 0) - 10))
    site.page("/", html("/text", "/tags", "/links", "/long", "/deep", title="Home"))
    site.page("/text", b"<p>" + b"word " * (PAGE_BYTES // 5 - 10))
    site.page("/tags", b"<p>w" * (parse_cost.TAGS_MAX - 10))
    site.page("/links", links)
    site.page("/long", b"x" * (3 * PAGE_BYTES))
    site.page("/deep", b"<div>" * (PAGE_BYTES // 5 - 10))


@pytest.mark.slow
async def test_huge_pages_are_bounded(
    app: Database, parts: Parts, site: Site, worker: OwnProcess
) -> None:
    a_site_of_huge_pages(site)
    tenant_id, job_id = await submit(app, parts.database, site.url, max_pages=9, sitemap="skip")

    peak = await run_to_the_end(worker)

    done = await ended(app, parts, tenant_id, job_id)
    assert {url.removeprefix(site.url): why for url, why in done.outcomes().items()} == {
        "/": "succeeded",
        "/text": "succeeded",
        "/tags": "succeeded",
        "/links": "limit_reached",
        "/long": "limit_reached",
        "/deep": "limit_reached",
    }
    assert peak < PEAK_BYTES, peak / MIB


async def know_many(system: Database, tenant_id: UUID, job_id: UUID) -> None:
    async with system.connection() as connection:
        await connection.execute(LIST_URLS, tenant_id, job_id, KNOWN_URLS)


@pytest.mark.slow
async def test_a_job_that_knows_very_many_urls_is_taken_over_in_little_memory(
    app: Database, parts: Parts, site: Site, worker: OwnProcess
) -> None:
    site.page("/", html(title="Home"))
    tenant_id, job_id = await submit(app, parts.database, site.url, sitemap="skip")
    await know_many(parts.database, tenant_id, job_id)

    peak = await run_to_the_end(worker)

    job = await work.status_of(app, tenant_id, job_id)
    assert job.progress.succeeded == 1
    assert peak < BASE_BYTES + 60 * KNOWN_URLS, peak / MIB
