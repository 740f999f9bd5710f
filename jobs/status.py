"""What the API tells of a job at one instant; lists of jobs, newest first."""

import base64
import binascii
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from jobs.records import Job, JobError, JobWarning, Progress, QueuePlace, Usage
from jobs.vocabulary import Kind, State
from runtime import sql
from runtime.database import Connection, Row
from runtime.errors import Refusal

SQL = sql.beside(__file__)

PROGRESS = Progress.__struct_fields__
USAGE = tuple(
    name
    for name in Usage.__struct_fields__
    if name not in {"search_requests", "input_tokens", "output_tokens"}
)


CursorTime = Annotated[datetime, Meta(tz=True)]
CURSOR_YEARS = range(1970, 9_998)
"""Beyond them a zone can push a time out of what PostgreSQL and Python hold."""


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs a list shows; None shows all."""

    kind: Kind | None = None
    state: State | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    tag: str | None = None


class JobNotFound(Refusal):
    """No such job of this tenant; another tenant's job is told apart from none by nobody."""

    def __init__(self) -> None:
        super().__init__("not_found", "There is no such job.")


async def read(connection: Connection, tenant_id: UUID, job_id: UUID) -> Job:
    """One statement, any connection of the app's role; raises JobNotFound."""
    row = await connection.fetchrow(SQL.one, tenant_id, job_id)
    if row is None:
        raise JobNotFound
    return job_of(row)


async def content_is_gone(connection: Connection, tenant_id: UUID, job_id: UUID) -> bool:
    """Whether the time of the job's content is over, by PostgreSQL's clock; raises JobNotFound."""
    row = await connection.fetchrow(SQL.one, tenant_id, job_id)
    if row is None:
        raise JobNotFound
    return bool(row["content_gone"])


async def newest(
    tx: Connection, tenant_id: UUID, wanted: JobFilter, *, after: str | None, limit: int
) -> tuple[list[Job], str | None]:
    """A list and the cursor of what follows it, None at the end; raises Refusal of a bad cursor."""
    before_time, before_id = read_cursor(after) if after else (None, None)
    rows = await tx.fetch(
        SQL.newest,
        tenant_id,
        [wanted.kind] if wanted.kind else None,
        [wanted.state] if wanted.state else None,
        wanted.created_after,
        wanted.created_before,
        wanted.tag,
        before_time,
        before_id,
        limit + 1,
    )
    found = [job_of(row) for row in rows[:limit]]
    more = len(rows) > limit
    return found, cursor_of(found[-1].created_at, found[-1].job_id) if more else None


def cursor_of(created_at: datetime, job_id: UUID) -> str:
    text = f"{created_at.isoformat()}|{job_id}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[datetime, UUID]:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        created_at, job_id = text.split("|")
        moment: datetime = msgspec.convert(created_at, CursorTime)
        found = moment, UUID(job_id)
    except (ValueError, binascii.Error) as error:
        raise _bad_cursor() from error
    if moment.year not in CURSOR_YEARS:
        raise _bad_cursor()
    return found


def _bad_cursor() -> Refusal:
    return Refusal("invalid_cursor", "The cursor in `after` is not one that a list gave.")


def job_of(row: Row) -> Job:
    values: dict[str, Any] = {
        name: row[name]
        for name in Job.__struct_fields__
        if name not in {"progress", "usage", "warnings", "error", "expires_at", "queue"}
    }
    if row.get("queue_position") is not None:
        values["queue"] = QueuePlace(
            position=row["queue_position"], starts_in_seconds=row["starts_in_seconds"]
        )
    if row["expires_at"] is not None:
        values["expires_at"] = row["expires_at"]
    return Job(
        progress=Progress(**{name: row[name] for name in PROGRESS}),
        usage=Usage(**{name: row[name] for name in USAGE}),
        warnings=msgspec.convert(row["warnings"], list[JobWarning]),
        error=msgspec.convert(row["error"], JobError | None),
        **values,
    )
