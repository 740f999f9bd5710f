"""Holds the content store's listing against the segments that paid pages name."""

from collections.abc import AsyncIterator
from datetime import datetime
from uuid import UUID

import msgspec
import structlog

from accounting import retention
from accounting.reconciliation import Verdict, Violation
from runtime import sql
from runtime.content import ContentStore
from runtime.database import Database

SQL = sql.beside(__file__)
log = structlog.get_logger()

INVARIANT = "content_is_kept"
JOBS_A_READ = 500


class ContentMatch(msgspec.Struct, frozen=True, kw_only=True):
    """One job: segments that its pages name, those that are not listed, those that nobody names.

    Orphans are harmless: a run that lost its job, or has not settled yet, leaves them.
    """

    named: int
    missing: list[str]
    orphans: int


async def match_content(
    database: Database, store: ContentStore, tenant_id: UUID, job_id: UUID
) -> ContentMatch:
    """What one job's listing says; raises Unavailable when the store does not answer."""
    named = await _segments(database, tenant_id, job_id)
    listed = set(await store.names_under(retention.segment_prefix(tenant_id, job_id)))
    missing = named - listed
    if missing:
        # retention may have deleted them after their names were read: then no page names them now
        missing &= await _segments(database, tenant_id, job_id)
    return ContentMatch(named=len(named), missing=sorted(missing), orphans=len(listed - named))


async def prove(database: Database, store: ContentStore) -> Verdict:
    """Whether the store has every segment of the finished jobs whose content is to be kept."""
    broken: list[Violation] = []
    jobs = orphans = 0
    async for tenant_id, job_id in _kept_jobs(database):
        match = await match_content(database, store, tenant_id, job_id)
        jobs += 1
        orphans += match.orphans
        broken += [
            Violation(
                tenant_id=tenant_id, subject=str(job_id), detail=f"{name} is not in the store"
            )
            for name in match.missing
        ]
    log.info("content_matched", jobs=jobs, missing=len(broken), orphans=orphans)
    return Verdict(
        invariant=INVARIANT,
        violations=len(broken),
        first=broken[0] if broken else None,
        tenants=sorted({one.tenant_id for one in broken}),
    )


async def _segments(database: Database, tenant_id: UUID, job_id: UUID) -> set[str]:
    async with database.connection() as connection:
        return {row["segment"] for row in await connection.fetch(SQL.segments, tenant_id, job_id)}


async def _kept_jobs(database: Database) -> AsyncIterator[tuple[UUID, UUID]]:
    place: tuple[UUID | None, datetime | None, UUID | None] = (None, None, None)
    while True:
        async with database.connection() as connection:
            rows = await connection.fetch(SQL.kept_jobs, *place, JOBS_A_READ)
        for row in rows:
            yield row["tenant_id"], row["job_id"]
        if len(rows) < JOBS_A_READ:
            return
        place = rows[-1]["tenant_id"], rows[-1]["expires_at"], rows[-1]["job_id"]
