"""Jobs across tenants: who runs them now, and how often their runs have died."""

from datetime import datetime
from uuid import UUID

import msgspec

from jobs.records import JobError
from jobs.status import cursor_of, read_cursor
from jobs.vocabulary import CompletionReason, Kind, State
from runtime import sql
from runtime.database import Connection

SQL = sql.beside(__file__)


class OperatorJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job of any tenant; `deaths` counts its runs that fell silent."""

    tenant_id: UUID
    job_id: UUID
    kind: Kind
    state: State
    completion_reason: CompletionReason | None
    error: JobError | None
    priority: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deadline_at: datetime
    lease_owner: str | None
    lease_until: datetime | None
    deaths: int
    admitted: int
    queued: int
    in_flight: int


class OperatorFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs a list shows; None shows all."""

    tenant_id: UUID | None = None
    state: State | None = None
    completion_reason: CompletionReason | None = None


async def newest(
    connection: Connection, wanted: OperatorFilter, *, after: str | None, limit: int
) -> tuple[list[OperatorJob], str | None]:
    """Newest first, and the cursor of what follows; raises Refusal of a bad cursor."""
    before_time, before_id = read_cursor(after) if after else (None, None)
    rows = await connection.fetch(
        SQL.newest,
        wanted.tenant_id,
        wanted.state,
        wanted.completion_reason,
        before_time,
        before_id,
        limit + 1,
    )
    found = [msgspec.convert(dict(row), OperatorJob) for row in rows[:limit]]
    more = len(rows) > limit
    return found, cursor_of(found[-1].created_at, found[-1].job_id) if more else None
