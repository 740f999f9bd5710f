"""Makes a long history of finished jobs at once, and times how quickly it is proved."""

from accounting import reconciliation
from runtime import clock, database
from runtime.database import Connection, Database
from tests.support import builders

PAGES_A_JOB = 500
PAGES_A_FLUSH = 25
JOBS = """
INSERT INTO job (tenant_id, job_id, key_id, kind, state, phase, request_hash, request,
    price_version, prices, max_pages, timeout_seconds, queue_limit_at, deadline_at, started_at,
    finished_at, completion_reason, admitted, succeeded, fetched_urls, fetch_attempts)
SELECT $1, ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'benchkey0000',
    'crawl', 'succeeded', 'done', '\\x00', '{}', 1, '{"page": 1}', $3::integer, 300, now(), now(),
    now(), now(), 'page_limit', $3::integer, $3::integer, $3::integer, $3::integer
FROM generate_series(1, $2::integer) AS n
"""
HOLDS = """
WITH made AS (INSERT INTO hold (tenant_id, hold_id, reserved, ceiling, charged, state, closed_at)
    SELECT tenant_id, job_id, max_pages, max_pages, max_pages, 'closed', now()
    FROM job WHERE tenant_id = $1 RETURNING tenant_id, hold_id, reserved),
entries AS (
    INSERT INTO transfer (tenant_id, kind, debit, credit, amount, hold_id, op_key)
    SELECT tenant_id, 'reserve', 'available', 'held', reserved, hold_id, 'reserve:' || hold_id
    FROM made
    UNION ALL
    SELECT tenant_id, 'charge', 'held', 'charged', $2::integer, hold_id,
        'charge:' || hold_id || ':' || n
    FROM made, generate_series(1, reserved / $2::integer) AS n)
SELECT 1
"""
ALLOCATIONS = """
INSERT INTO hold_allocation (tenant_id, hold_id, position, lot_id, reserved)
SELECT h.tenant_id, h.hold_id, 1, l.lot_id, h.reserved FROM hold h JOIN lot l USING (tenant_id)
WHERE h.tenant_id = $1
"""
PAGES = """
INSERT INTO page (tenant_id, job_id, page_no, url, url_key, depth, source, state, attempts, fence,
    outcome, http_status, content_type, bytes, content_hash, credits, transfer_id, settled_at)
SELECT t.tenant_id, t.hold_id, (flush - 1) * $2::integer + n - 1, 'https://example.com/' || n,
    sha256(((flush - 1) * $2::integer + n)::text::bytea), 1, 'link', 'succeeded', 1, 1, 'page', 200,
    'text/html', 23400, sha256(n::text::bytea), 1, t.transfer_id, now()
FROM (SELECT *, split_part(op_key, ':', 3)::integer AS flush FROM transfer
      WHERE tenant_id = $1 AND kind = 'charge') AS t, generate_series(1, $2::integer) AS n
"""
SPENT = """
WITH spent AS (SELECT sum(reserved) AS total FROM hold WHERE tenant_id = $1),
lots AS (UPDATE lot SET remaining = remaining - total FROM spent WHERE tenant_id = $1)
UPDATE account SET available = available - total FROM spent WHERE tenant_id = $1
"""


async def write(system: Database, pages: int) -> None:
    """A tenant of its own whose jobs charged so many pages; nothing of it breaks a rule."""
    tenant = await builders.a_tenant(system, credits=pages * 2)
    jobs = pages // PAGES_A_JOB
    connection = await database.connect(system.url)
    try:
        await connection.execute("SET statement_timeout = 0")
        await connection.execute(JOBS, tenant.tenant_id, jobs, PAGES_A_JOB)
        await connection.execute(HOLDS, tenant.tenant_id, PAGES_A_FLUSH)
        await connection.execute(ALLOCATIONS, tenant.tenant_id)
        await connection.execute(PAGES, tenant.tenant_id, PAGES_A_FLUSH)
        await connection.execute(SPENT, tenant.tenant_id)
    finally:
        await connection.close()


async def proof_seconds(system: Database) -> tuple[dict[str, float], int]:
    """How long each statement of the proof takes over everything, and how many pages that is."""
    async with system.snapshot() as snapshot:
        pages: int = await snapshot.fetchval("SELECT count(*) FROM page WHERE credits > 0")
        await snapshot.execute(f"SET LOCAL work_mem = '{reconciliation.WORK_MEMORY}'")
        seconds = {
            name: await _timed(snapshot, query) for name, query in reconciliation.in_full().items()
        }
    return seconds, pages


async def _timed(connection: Connection, query: str) -> float:
    began = clock.monotonic()
    assert await connection.fetch(query) == []
    return clock.monotonic() - began
