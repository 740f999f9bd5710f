"""Statements of a time: opening, movements by kind, closing; months are closed for ever."""

from datetime import UTC, date, datetime, timedelta
from typing import Literal
from uuid import UUID

import msgspec
import structlog

from runtime import sql
from runtime.database import Connection, Database, Row

SQL = sql.beside(__file__)
log = structlog.get_logger()

LineKind = Literal[
    "grant", "adjust_in", "refund", "charge", "expire", "adjust_out", "reserve", "release"
]
JOBS_LISTED = 1_000
"""Open jobs that a statement lists, the largest holds first; the rest are summed."""
TENANTS_A_TURN = 200


class Balances(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant has: total = available + held."""

    available: int
    held: int
    total: int


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of one kind. `effect` is what they did to available and held together.

    `prior_period` (YYYY-MM) is set where their work was in a month before the statement's.
    """

    kind: LineKind
    prior_period: str | None
    entries: int
    credits: int
    effect: int


class HeldByJob(msgspec.Struct, frozen=True, kw_only=True):
    """What an open job bound at the closing."""

    job_id: UUID
    credits: int


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a statement: entries recorded from `starts_at` until just before `ends_at`."""

    starts_at: datetime
    ends_at: datetime
    period: str | None = None
    """YYYY-MM where it is a whole calendar month of UTC."""


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """opening.total + the lines' effects = closing.total; a closed period never changes."""

    tenant_id: UUID
    period: str | None
    starts_at: datetime
    ends_at: datetime
    closed_at: datetime | None
    opening: Balances
    lines: list[Line]
    closing: Balances
    held_by_job: list[HeldByJob]
    held_by_other_jobs: int
    proves: bool


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """The balance just before an instant, from the entries alone.

    granted - adjusted_out = available + held + (charged_lifetime - refunded) + expired.
    """

    available: int
    held: int
    charged_lifetime: int
    charged_period: int
    refunded: int
    expired: int
    granted: int
    adjusted_out: int


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The two ends of a statement and what is between them."""

    opening: Balances
    lines: list[Line]
    closing: Balances
    closed_at: datetime | None = None


def month(period: str) -> Span:
    """The span of YYYY-MM; raises ValueError for what is no month."""
    first = date.fromisoformat(f"{period}-01")
    following = (first + timedelta(days=31)).replace(day=1)
    return Span(starts_at=_midnight(first), ends_at=_midnight(following), period=period)


def month_of(moment: datetime) -> Span:
    return month(f"{moment.astimezone(UTC):%Y-%m}")


def until(span: Span, as_of: datetime) -> Span:
    """The span, ended early by an instant inside it."""
    return span if as_of >= span.ends_at else Span(starts_at=span.starts_at, ends_at=as_of)


async def read(snapshot: Connection, tenant_id: UUID, span: Span) -> Statement:
    """The statement of a time, all of it from one snapshot."""
    bounds = await _closed(snapshot, tenant_id, span) or await _added_up(snapshot, tenant_id, span)
    held = await snapshot.fetch(SQL.held_by_job, tenant_id, span.ends_at, JOBS_LISTED)
    total = held[0]["total"] if held else 0
    moved = sum(line.effect for line in bounds.lines)
    return Statement(
        tenant_id=tenant_id,
        period=span.period,
        starts_at=span.starts_at,
        ends_at=span.ends_at,
        closed_at=bounds.closed_at,
        opening=bounds.opening,
        lines=bounds.lines,
        closing=bounds.closing,
        held_by_job=[HeldByJob(job_id=row["job_id"], credits=row["credits"]) for row in held],
        held_by_other_jobs=total - sum(row["credits"] for row in held),
        proves=bounds.opening.total + moved == bounds.closing.total
        and total == bounds.closing.held,
    )


async def totals_at(connection: Connection, tenant_id: UUID, instant: datetime) -> Totals:
    """What all entries recorded before the instant say."""
    row = await connection.fetchrow(SQL.totals_at, tenant_id, instant)
    assert row is not None
    return msgspec.convert(dict(row), Totals)


async def close_due(database: Database) -> int:
    """Closes every month that has ended and that nothing can still be added to; how many."""
    async with database.connection() as connection:
        marked = await connection.fetchrow(SQL.mark)
    assert marked is not None
    closed = 0
    while turn := await _close_turn(database, marked):
        closed += turn
    return closed


async def _close_turn(database: Database, marked: Row) -> int:
    """Closes one month of each tenant that waits for it; 0 while older transactions run."""
    async with database.connection() as connection:
        due = await connection.fetch(SQL.due, marked["before"], TENANTS_A_TURN)
        closed = 0
        for row in due:
            answer = await connection.fetchval(
                SQL.close, row["tenant_id"], marked["before"], marked["mark"]
            )
            closed += answer == "closed"
            if answer == "broken":
                log.error("period_not_closed", tenant_id=str(row["tenant_id"]))
    if closed:
        log.info("periods_closed", tenants=closed)
    return closed


async def _closed(snapshot: Connection, tenant_id: UUID, span: Span) -> Bounds | None:
    """What was written down when the month was closed; None where it is none, or is open."""
    if span.period is None:
        return None
    row = await snapshot.fetchrow(SQL.closed, tenant_id, span.starts_at.date())
    if row is None:
        return None
    return Bounds(
        opening=_balances(row["opening_available"], row["opening_held"]),
        lines=[_line(line) for line in row["totals"]],
        closing=_balances(row["closing_available"], row["closing_held"]),
        closed_at=row["closed_at"],
    )


async def _added_up(snapshot: Connection, tenant_id: UUID, span: Span) -> Bounds:
    """Opening, lines and closing each from the entries, so that they can prove one another."""
    rows = await snapshot.fetch(SQL.lines, tenant_id, span.starts_at, span.ends_at)
    return Bounds(
        opening=await _balance_at(snapshot, tenant_id, span.starts_at),
        lines=[_line(row) for row in rows],
        closing=await _balance_at(snapshot, tenant_id, span.ends_at),
    )


async def _balance_at(snapshot: Connection, tenant_id: UUID, instant: datetime) -> Balances:
    row = await snapshot.fetchrow(SQL.balance_at, tenant_id, instant)
    assert row is not None
    return _balances(row["available"], row["held"])


def _balances(available: int, held: int) -> Balances:
    return Balances(available=available, held=held, total=available + held)


def _line(row: Row | dict[str, object]) -> Line:
    values = dict(row)
    effect = values.pop("available") + values.pop("held")
    return msgspec.convert({**values, "effect": effect}, Line)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
