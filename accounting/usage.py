"""What a tenant used, by day, kind, key, host or tag; agrees with the entries to the credit."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from runtime import sql
from runtime.database import Connection

SQL = sql.beside(__file__)

By = Literal["day", "kind", "key", "host", "tag"]


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """Pages that became final, by outcome, and credits by their entries."""

    succeeded: int
    failed: int
    skipped: int
    credits_charged: int
    credits_refunded: int


class Group(Used, frozen=True, kw_only=True):
    """One day (YYYY-MM-DD, UTC), kind, key id, host or tag; '' where a job has no tag."""

    group: str


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """Groups in the order of their names. `total` is of the whole time, each page once.

    By tag, a job with several tags shows in each of them, so the groups may sum to more.
    """

    by: By
    starts_at: datetime
    ends_at: datetime
    items: list[Group]
    next: str | None
    total: Used


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which usage is asked for: from `starts_at` until just before `ends_at`."""

    by: By
    starts_at: datetime
    ends_at: datetime


async def read(
    snapshot: Connection, tenant_id: UUID, wanted: Wanted, *, after: str | None, limit: int
) -> UsageReport:
    """Everything in one statement; a page that was charged counts when its entry was recorded."""
    rows = await snapshot.fetch(
        SQL.groups, tenant_id, wanted.by, wanted.starts_at, wanted.ends_at, after, limit + 1
    )
    total, *named = (dict(row) for row in rows)
    del total["group"]
    groups = [msgspec.convert(row, Group) for row in named[:limit]]
    return UsageReport(
        by=wanted.by,
        starts_at=wanted.starts_at,
        ends_at=wanted.ends_at,
        items=groups,
        next=groups[-1].group if len(named) > limit else None,
        total=msgspec.convert(total, Used),
    )
