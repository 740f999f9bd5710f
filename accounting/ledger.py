"""Moves credits between issued, available, held and charged; knows holds, never jobs."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from accounting.lots import Lot
from runtime import sql
from runtime.database import Connection
from runtime.errors import Refusal

SQL = sql.beside(__file__)

EntryKind = Literal["grant", "reserve", "charge", "release", "expire", "refund", "adjust_out"]


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """granted - adjusted_out = available + held + (charged_lifetime - refunded) + expired."""

    available: int
    held: int
    charged_lifetime: int
    charged_period: int
    refunded: int
    expired: int
    granted: int
    adjusted_out: int
    lots: list[Lot]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One transfer: so many credits from one account of the tenant to another."""

    entry_id: int
    kind: EntryKind
    debit: str
    credit: str
    amount: int
    job_id: UUID | None
    lot_id: UUID | None
    op_key: str
    recorded_at: datetime
    meta: dict[str, Any] | None


class EntryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries a list shows; None shows all."""

    job_id: UUID | None = None
    kind: EntryKind | None = None
    since: datetime | None = None
    until: datetime | None = None


async def balance(connection: Connection, tenant_id: UUID) -> Balance:
    """The tenant's credits at one instant; raises Refusal where there is no such tenant."""
    row = await connection.fetchrow(SQL.balance, tenant_id)
    if row is None:
        raise Refusal("not_found", "There is no such tenant.")
    return msgspec.convert(dict(row), Balance)


async def entries(
    connection: Connection, tenant_id: UUID, wanted: EntryFilter, *, after: int, limit: int
) -> list[Entry]:
    """Entries in the order of their ids, beyond `after`."""
    rows = await connection.fetch(
        SQL.entries,
        tenant_id,
        after,
        wanted.job_id,
        wanted.kind,
        wanted.since,
        wanted.until,
        limit,
    )
    return [
        Entry(
            entry_id=row["transfer_id"],
            job_id=row["hold_id"],
            **{
                name: row[name]
                for name in Entry.__struct_fields__
                if name not in {"entry_id", "job_id"}
            },
        )
        for row in rows
    ]
