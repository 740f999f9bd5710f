"""A full disk costs time and no credit; the job goes on when there is room again."""

import asyncio
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from runtime import database, loops
from runtime.database import Database
from tests.support import work
from tests.support.database import DatabaseUrls
from tests.support.processes import OwnProcess
from tests.support.site import Site, html
from tests.support.workers import ended, run_next, submit
from workers.parts import Parts

NO_ROOM = (1, resource.RLIM_INFINITY)
ROOM = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
REFUSE = """
CREATE FUNCTION refuse_v0() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '{sqlstate}'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE OF charged ON hold FOR EACH ROW
WHEN (NEW.charged > OLD.charged) EXECUTE FUNCTION refuse_v0();
"""
GRANT = "DROP TRIGGER refuse ON hold; DROP FUNCTION refuse_v0()"
TOKEN = "SELECT lease_token FROM job WHERE job_id = $1"
SECOND_TOKEN = 3
"""Each run has its own, and so has each time between two of them."""
LOOK_SECONDS = 0.05


def a_small_site(site: Site) -> None:
    site.page("/", html("/a", "/b", title="Home"))
    site.page("/a", html(title="A"))
    site.page("/b", html(title="B"))


@pytest.fixture
def worker(parts: Parts, tmp_path: Path) -> Iterator[OwnProcess]:
    chosen = msgspec.structs.replace(
        parts.settings, log_format="json", drain_seconds=2.0, lease_seconds=2.0
    )
    process = OwnProcess("workers", chosen, log=tmp_path / "worker.log")
    yield process
    process.stop()


async def claimed_again(system: Database, job_id: UUID) -> None:
    """Until two runs of the job have begun; PostgreSQL has to be asked."""
    async with asyncio.timeout(60), system.connection() as connection:
        while await connection.fetchval(TOKEN, job_id) < SECOND_TOKEN:  # noqa: ASYNC110 # a row
            await asyncio.sleep(LOOK_SECONDS)


@pytest.mark.slow
async def test_a_worker_without_room_for_content_or_log_goes_on_when_there_is_some(
    app: Database, parts: Parts, site: Site, worker: OwnProcess
) -> None:
    a_small_site(site)
    worker.start()
    await asyncio.to_thread(worker.logged, '"process_started"')
    resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE, NO_ROOM)
    tenant_id, job_id = await submit(app, parts.database, site.url)
    await claimed_again(parts.database, job_id)
    full = await work.status_of(app, tenant_id, job_id)

    resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE, ROOM)
    await asyncio.to_thread(worker.logged, '"frontier_exhausted"')

    done = await ended(app, parts, tenant_id, job_id)
    assert (full.state, full.progress.succeeded, full.usage.credits_charged) == ("running", 0, 0)
    assert (done.job.state, done.job.usage.credits_charged) == ("succeeded", 3)
    assert "log_lines_lost" in worker.log


@asynccontextmanager
async def refusing(urls: DatabaseUrls, sqlstate: str) -> AsyncIterator[None]:
    """PostgreSQL takes no charge, for this reason."""
    owner = await database.connect(urls.owner)
    try:
        await owner.execute(REFUSE.format(sqlstate=sqlstate))
        yield
        await owner.execute(GRANT)
    finally:
        await owner.close()


@pytest.mark.parametrize(
    "sqlstate",
    ["53100", "53200", "53300", "58030", "25006"],
    ids=["disk full", "out of memory", "too many connections", "I/O error", "read only"],
)
async def test_a_postgresql_without_room_is_away(
    app: Database,
    parts: Parts,
    site: Site,
    database_urls: DatabaseUrls,
    monkeypatch: pytest.MonkeyPatch,
    sqlstate: str,
) -> None:
    a_small_site(site)
    tenant_id, job_id = await submit(app, parts.database, site.url)
    async with refusing(database_urls, sqlstate):
        with monkeypatch.context() as patched:
            # As if it had been away for longer than a run is patient.
            patched.setattr(loops, "FIRST_PAUSE_SECONDS", 3_600.0)
            await run_next(parts)
        handed_back = await work.status_of(app, tenant_id, job_id)

    await run_next(parts)

    done = await ended(app, parts, tenant_id, job_id)
    assert (handed_back.state, handed_back.usage.credits_charged) == ("running", 0)
    assert (done.job.state, done.job.usage.credits_charged) == ("succeeded", 3)
