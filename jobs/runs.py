"""A worker's exclusive, expiring right to run a job, and the URLs it may fetch under it."""

from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from jobs.requests import REQUEST_OF, JobRequest
from jobs.vocabulary import Kind, Reason, State
from runtime import sql
from runtime.database import Connection, Row

SQL = sql.beside(__file__)
STREAM_ROWS = 2_000


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """Names a run: every write of it carries the token, and SQL refuses an old one."""

    tenant_id: UUID
    job_id: UUID
    token: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A claimed job: what to do and under which lease."""

    lease: Lease
    kind: Kind
    request: JobRequest
    prices: dict[str, int]
    max_pages: int
    seconds_left: float
    waited_seconds: float
    extensions: int


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A URL to fetch now; it is in flight until it is settled or the lease is freed."""

    page_no: int
    url: str
    depth: int
    attempts: int
    source: str


class Renewal(msgspec.Struct, frozen=True, kw_only=True):
    """What a heartbeat learns: the job's state and the seconds to its deadline."""

    job_state: State
    seconds_left: float


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job stands when its run has nothing more to claim."""

    state: State
    queued: int
    in_flight: int
    succeeded: int
    page_limit_met: bool
    round_limit_met: bool
    outstanding: int
    may_grow: bool
    extensions: int
    first_reason: Reason | None
    first_detail: str | None
    first_url: str | None
    first_status: int | None


async def claim_job(connection: Connection, owner: str, *, lease_seconds: float) -> Run | None:
    """The next job for a free slot, by fair share; None when nothing may start now."""
    row = await connection.fetchrow(SQL.claim_job, owner, timedelta(seconds=lease_seconds))
    return None if row is None else _run(row)


async def renew(connection: Connection, lease: Lease, *, lease_seconds: float) -> Renewal | None:
    """Prolongs the lease; None when it is lost and the run must stop writing."""
    row = await connection.fetchrow(
        SQL.renew, lease.tenant_id, lease.job_id, lease.token, timedelta(seconds=lease_seconds)
    )
    return None if row is None else msgspec.convert(dict(row), Renewal)


async def hand_back(connection: Connection, lease: Lease) -> bool:
    """Gives the job to whoever claims it next; False when it was not ours any more."""
    return bool(
        await connection.fetchval(SQL.hand_back, lease.tenant_id, lease.job_id, lease.token)
    )


async def free_leases(connection: Connection, *, limit: int) -> list[tuple[UUID, UUID, str]]:
    """Frees the leases of silent runs; tells (tenant, job, owner) of each."""
    rows = await connection.fetch(SQL.free_leases, limit)
    return [(row["tenant"], row["job"], row["owner"]) for row in rows]


async def claim_pages(
    connection: Connection, lease: Lease, *, limit: int, by_level: bool
) -> list[Claim]:
    """URLs to fetch, shallowest first; none when the lease is lost or the hold is spoken for.

    `by_level` waits for a level to be finished before the next is begun, which makes depths exact.
    """
    rows = await connection.fetch(
        SQL.claim_pages, lease.tenant_id, lease.job_id, lease.token, limit, by_level
    )
    return [claim_of(row) for row in rows]


def claim_of(row: Row) -> Claim:
    return Claim(
        page_no=row["page_no"],
        url=row["url"],
        depth=row["depth"],
        attempts=row["attempts"],
        source=row["source"],
    )


async def known_keys(connection: Connection, lease: Lease) -> AsyncGenerator[bytes]:
    """The canonical keys of every URL the job has discovered and listed so far."""
    async for key in _stream(connection, SQL.known_keys, lease):
        yield key


async def known_content(connection: Connection, lease: Lease) -> AsyncGenerator[bytes]:
    """The hashes of the bodies that the job has succeeded with so far."""
    async for key in _stream(connection, SQL.known_content, lease):
        yield key


async def _stream(connection: Connection, statement: str, lease: Lease) -> AsyncGenerator[bytes]:
    """The first column, row by row: of a job of millions of URLs they are never here at once."""
    async with connection.transaction(readonly=True):
        rows = connection.cursor(statement, lease.tenant_id, lease.job_id, prefetch=STREAM_ROWS)
        async for row in rows:
            yield bytes(row[0])


async def was_left_out(connection: Connection, lease: Lease, key: bytes) -> bool:
    """Whether a canonical key was excluded by a limit of the job, and by nothing else."""
    return bool(await connection.fetchval(SQL.was_left_out, lease.tenant_id, lease.job_id, key))


async def standing(connection: Connection, lease: Lease) -> Standing:
    row = await connection.fetchrow(SQL.standing, lease.tenant_id, lease.job_id)
    assert row is not None, "a leased job has its row"
    return msgspec.convert(dict(row), Standing)


def _run(row: Row) -> Run:
    values: dict[str, Any] = {
        name: row[name] for name in ("kind", "prices", "max_pages", "seconds_left", "extensions")
    }
    return Run(
        lease=Lease(tenant_id=row["tenant_id"], job_id=row["job_id"], token=row["lease_token"]),
        request=msgspec.convert(row["request"], REQUEST_OF[row["kind"]]),
        waited_seconds=row["waited_seconds"],
        **values,
    )
