"""Drops page content when it is due, never while settlement is pending; bills stay."""

from uuid import UUID

import structlog

from runtime import sql
from runtime.content import ContentStore
from runtime.database import Connection, Database

SQL = sql.beside(__file__)
log = structlog.get_logger()

JOBS_A_TURN = 100


async def drop_due(database: Database, store: ContentStore) -> int:
    """Deletes the content of jobs whose time has come; how many jobs that were.

    Objects first, rows second: killed in between, the next turn deletes nothing and marks the row.
    """
    async with database.connection() as connection:
        due = await connection.fetch(SQL.due, JOBS_A_TURN)
    for row in due:
        objects = await store.delete_under(segment_prefix(row["tenant_id"], row["job_id"]))
        async with database.transaction() as tx:
            await tx.execute(SQL.clear_pages, row["tenant_id"], row["job_id"])
            await tx.execute(SQL.mark_deleted, row["tenant_id"], row["job_id"])
        log.info("content_deleted", job_id=str(row["job_id"]), segments=objects)
    return len(due)


async def backlog(connection: Connection) -> int:
    """Jobs whose content should be gone and is not yet."""
    return int(await connection.fetchval(SQL.backlog))


def segment_prefix(tenant_id: UUID, job_id: UUID) -> str:
    """The folder of a job's segments; whoever writes one and whoever deletes them agree here."""
    return f"{tenant_id}/{job_id}/"
