"""Credit lots: grants with an expiry, the soonest to expire spent first."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from runtime import database, ids, sql
from runtime.database import Connection
from runtime.errors import Refusal

SQL = sql.beside(__file__)

LotSource = Literal["grant", "purchase", "plan"]

DEFAULT_PRIORITY = 50


class Lot(msgspec.Struct, frozen=True, kw_only=True):
    """Credits that came together and expire together."""

    lot_id: UUID
    source: str
    amount: int
    remaining: int
    expires_at: datetime | None
    priority: int
    created_at: datetime


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Credits to give. The same op_key again, with the same amount, gives nothing more."""

    amount: int
    source: LotSource
    op_key: str
    expires_at: datetime | None = None
    priority: int = DEFAULT_PRIORITY
    meta: dict[str, str] = {}


async def grant(connection: Connection, tenant_id: UUID, wanted: Grant) -> tuple[UUID, bool]:
    """The lot, and whether it is a replay; raises Refusal for no tenant or a reused op_key."""
    row = await connection.fetchrow(
        SQL.grant,
        tenant_id,
        ids.new_id(),
        wanted.amount,
        wanted.source,
        wanted.op_key,
        wanted.expires_at,
        wanted.priority,
        database.as_json(wanted.meta),
    )
    assert row is not None
    if row["outcome"] == "no_tenant":
        raise Refusal("not_found", "There is no such tenant.")
    if row["outcome"] == "conflict":
        raise Refusal(
            "idempotency_conflict",
            "This op_key was used for another grant.",
            lot_id=str(row["granted_lot"]),
        )
    return row["granted_lot"], row["outcome"] == "replayed"


async def expire_lots(tx: Connection, tenant_id: UUID) -> int:
    """Moves what expired lots still hold out of the balance; how many credits that were."""
    await tx.execute(SQL.lock_account, tenant_id)
    return int(await tx.fetchval(SQL.expire_lots, tenant_id))


async def tenants_with_expired_lots(connection: Connection, *, limit: int) -> list[UUID]:
    rows = await connection.fetch(SQL.tenants_with_expired_lots, limit)
    return [row["tenant_id"] for row in rows]
