"""Closes holds of finished jobs that a crash left open; starts their retention clock."""

import msgspec
import structlog

from accounting import lots, metering, metrics
from runtime import sql
from runtime.database import Connection, Database

SQL = sql.beside(__file__)
log = structlog.get_logger()

JOBS_A_TURN = 200
TENANTS_A_TURN = 200


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """Final jobs with an open hold; normally none, as a job and its hold end together."""

    jobs: int
    oldest_seconds: float


async def settle(database: Database) -> int:
    """Settles what was left; how many jobs that were. Each one is loud in the log."""
    async with database.connection() as connection:
        settled = await metering.settle_orphans(connection, limit=JOBS_A_TURN)
    done = [one for one in settled if one.fault is None]
    for one in settled:
        if one.fault is None:
            log.warning("orphan_settled", tenant_id=str(one.tenant), job_id=str(one.job))
        else:
            log.error("orphan_not_settled", job_id=str(one.job), fault=one.fault)
    metrics.ORPHANS_SETTLED.inc(len(done))
    return len(done)


async def expire_lots(database: Database) -> int:
    """Takes expired lots out of the balances, tenant by tenant; how many credits expired."""
    async with database.connection() as connection:
        due = await lots.tenants_with_expired_lots(connection, limit=TENANTS_A_TURN)
    total = 0
    for tenant_id in due:
        async with database.transaction() as tx:
            credits = await lots.expire_lots(tx, tenant_id)
        log.info("lots_expired", tenant_id=str(tenant_id), credits=credits)
        total += credits
    return total


async def pending(connection: Connection) -> Pending:
    row = await connection.fetchrow(SQL.pending)
    assert row is not None
    return msgspec.convert(dict(row), Pending)


async def credits_by_kind(connection: Connection) -> dict[str, int]:
    """All credits ever moved, by kind of entry."""
    return {row["kind"]: row["credits"] for row in await connection.fetch(SQL.totals)}
