"""A job's bill, line by line: its hold, its entries, each page, refunds apart."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from accounting import ledger
from accounting.ledger import Entry, EntryFilter, EntryKind
from jobs.status import JobNotFound
from jobs.vocabulary import Kind, PageOutcomeWord, PageState, Reason, State
from runtime import sql
from runtime.database import Connection

SQL = sql.beside(__file__)


class StatementPart(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a big bill is wanted: pages beyond an index, entries beyond an id."""

    after: int
    entries_after: int
    limit: int


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """reserved = charged + released + outstanding; closed, nothing is outstanding."""

    state: Literal["open", "closed"]
    reserved: int
    charged: int
    released: int
    outstanding: int
    opened_at: datetime
    closed_at: datetime | None


class Movement(msgspec.Struct, frozen=True, kw_only=True):
    """All entries of one kind."""

    kind: EntryKind
    entries: int
    credits: int


class PageLine(msgspec.Struct, frozen=True, kw_only=True):
    """What one page cost, and the entry that charged it."""

    index: int
    url: str
    status: PageState
    reason: Reason | None
    outcome: PageOutcomeWord | None
    credits: int
    entry_id: int | None


class RefundLine(msgspec.Struct, frozen=True, kw_only=True):
    """What was given back of a page's charge."""

    index: int
    credits: int
    entry_id: int
    reason: str
    refunded_at: datetime


class JobStatement(msgspec.Struct, frozen=True, kw_only=True):
    """The bill of one job. `closing` is reserved - charged - released: 0 once the job is final.

    `pages` and `refunds` go on beyond the index `next`, `entries` beyond the id `entries_next`.
    """

    job_id: UUID
    kind: Kind
    state: State
    price_version: int
    prices: dict[str, int]
    hold: Hold
    movements: list[Movement]
    closing: int
    refunded: int
    pages_total: int
    pages_charged: int
    proves: bool
    entries: list[Entry]
    entries_next: int | None
    pages: list[PageLine]
    refunds: list[RefundLine]
    next: int | None


async def read(
    snapshot: Connection, tenant_id: UUID, job_id: UUID, part: StatementPart
) -> JobStatement:
    """The bill at one instant; raises JobNotFound."""
    head = await snapshot.fetchrow(SQL.head, tenant_id, job_id)
    if head is None:
        raise JobNotFound
    moved = [
        msgspec.convert(dict(row), Movement)
        for row in await snapshot.fetch(SQL.movements, tenant_id, job_id)
    ]
    hold = hold_of(dict(head))
    sums = {line.kind: line.credits for line in moved}
    closing = sums.get("reserve", 0) - sums.get("charge", 0) - sums.get("release", 0)
    return JobStatement(
        **{name: head[name] for name in ("job_id", "kind", "state", "price_version", "prices")},
        hold=hold,
        movements=moved,
        closing=closing,
        refunded=sums.get("refund", 0),
        pages_total=head["pages"],
        pages_charged=head["charged_pages"],
        proves=closing == hold.outstanding
        and sums.get("charge", 0) == hold.charged == head["page_credits"]
        and (hold.state == "open" or closing == 0),
        **await _entries(snapshot, tenant_id, job_id, part),
        **await _pages(snapshot, tenant_id, job_id, part),
    )


def hold_of(head: dict[str, Any]) -> Hold:
    return Hold(
        state=head["hold_state"],
        outstanding=head["reserved"] - head["charged"] - head["released"],
        **{
            name: head[name]
            for name in ("reserved", "charged", "released", "opened_at", "closed_at")
        },
    )


async def _entries(
    snapshot: Connection, tenant_id: UUID, job_id: UUID, part: StatementPart
) -> dict[str, Any]:
    found = await ledger.entries(
        snapshot,
        tenant_id,
        EntryFilter(job_id=job_id),
        after=part.entries_after,
        limit=part.limit + 1,
    )
    shown = found[: part.limit]
    more = len(found) > part.limit
    return {"entries": shown, "entries_next": shown[-1].entry_id if more else None}


async def _pages(
    snapshot: Connection, tenant_id: UUID, job_id: UUID, part: StatementPart
) -> dict[str, Any]:
    rows = await snapshot.fetch(SQL.pages, tenant_id, job_id, part.after, part.limit + 1)
    shown = [msgspec.convert(dict(row), PageLine) for row in rows[: part.limit]]
    if not shown:
        return {"pages": [], "refunds": [], "next": None}
    refunds = await snapshot.fetch(SQL.refunds, tenant_id, job_id, shown[0].index, shown[-1].index)
    return {
        "pages": shown,
        "refunds": [msgspec.convert(dict(row), RefundLine) for row in refunds],
        "next": shown[-1].index if len(rows) > part.limit else None,
    }
