"""What a flush, a claim, a status and a page of results read does not grow with the job."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from accounting import metering
from jobs import results, runs, status
from jobs.outcomes import Facts
from jobs.runs import Run
from runtime import database
from runtime.database import Connection, Database
from tests.support import builders, work
from tests.support.database import DatabaseUrls

PAGES = 600
BATCH = 5
READ = """
SELECT coalesce(sum(seq_tup_read), 0) + coalesce(sum(idx_tup_fetch), 0)
FROM pg_stat_xact_user_tables WHERE relname = 'page'
"""


@pytest_asyncio.fixture
async def own(own_database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    pool = Database(own_database_urls.system, role=database.SYSTEM, size=1)
    await pool.open()
    yield pool
    await pool.close()


async def a_large_run(own: Database, urls: DatabaseUrls, *, analyzed: bool) -> Run:
    """A job with very many pages, where there are no statistics or those of one-page jobs."""
    tenant = await builders.a_tenant(own, credits=10_000)
    for _ in range(3):
        await builders.a_job(own, tenant.tenant_id)
        await work.finish(own, await work.claim(own))
    if analyzed:
        connection = await database.connect(urls.owner)
        try:
            await connection.execute("VACUUM ANALYZE")
        finally:
            await connection.close()
    await builders.a_job(own, tenant.tenant_id, max_pages=PAGES)
    run = await work.claim(own)
    await work.settle(own, run, found=[work.link(number) for number in range(PAGES - 1)])
    return run


async def read_by(connection: Connection) -> int:
    """Rows of pages this connection has read since its counts were last handed in."""
    total: int = await connection.fetchval(READ)
    return total


@pytest.mark.parametrize("analyzed", [False, True])
@pytest.mark.parametrize("by_level", [False, True])
async def test_reads_do_not_grow_with_the_job(
    own: Database, own_database_urls: DatabaseUrls, *, analyzed: bool, by_level: bool
) -> None:
    run = await a_large_run(own, own_database_urls, analyzed=analyzed)
    settled = 0
    for _ in range(20):
        async with own.transaction() as tx:
            before = await read_by(tx)
            claims = await runs.claim_pages(tx, run.lease, limit=BATCH, by_level=by_level)
            claimed = await read_by(tx)
            done = [work.ok(claim.page_no) for claim in claims]
            found = [work.link(number) for number in range(settled, settled + BATCH)]
            await metering.settle_pages(tx, run.lease, run.prices, done, found, Facts())
            written = await read_by(tx)
        settled += len(done)
        assert len(done) == (1 if by_level and settled == 1 else BATCH)
        assert claimed - before <= 3 * BATCH
        assert written - claimed <= 3 * BATCH


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_page_of_results_reads_what_it_gives(
    own: Database, own_database_urls: DatabaseUrls, *, analyzed: bool
) -> None:
    """While the job has very many URLs to go, and after its end."""
    run = await a_large_run(own, own_database_urls, analyzed=analyzed)
    ids = run.lease.tenant_id, run.lease.job_id
    await work.pages(own, run, PAGES // 2)
    await work.settle(own, run, [work.ok(number) for number in range(PAGES // 2)])
    for last in (PAGES // 2 - 1, PAGES - 1):
        async with own.transaction() as tx:
            before = await read_by(tx)
            rows, _ = await results.final_pages(tx, *ids, after=90, status=None, limit=BATCH)
            assert await results.last_final(tx, *ids) == last
            assert await read_by(tx) - before <= 3 * BATCH
        assert [row.page.index for row in rows] == list(range(91, 91 + BATCH))
        await work.finish(own, run)


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_status_reads_no_page(
    own: Database, own_database_urls: DatabaseUrls, *, analyzed: bool
) -> None:
    """While the job has very many URLs to go, and after its end."""
    run = await a_large_run(own, own_database_urls, analyzed=analyzed)
    await work.pages(own, run, PAGES // 2)
    for _ in range(2):
        async with own.transaction() as tx:
            before = await read_by(tx)
            told = await status.read(tx, run.lease.tenant_id, run.lease.job_id)
            assert await read_by(tx) == before
        assert told.progress.discovered == PAGES
        await work.finish(own, run)
