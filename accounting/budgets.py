"""Caps on what a tenant, a key or a tag may commit, and notices when credits run low."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from runtime import ids, sql
from runtime.database import Connection
from runtime.errors import Refusal

SQL = sql.beside(__file__)

Node = Literal["tenant", "key", "tag"]
Period = Literal["day", "month", "total"]
Cap = Annotated[int, Meta(ge=0, le=1_000_000_000_000_000)]


class BudgetRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cap to set; `subject` is a key's id or a tag, and empty for the whole tenant."""

    node: Node
    period: Period
    cap: Cap
    subject: Annotated[str, Meta(max_length=64, pattern=r"\A[^\x00-\x1f\x7f]*\Z")] = ""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """A cap and where its running period stands: used and held count against it alike."""

    budget_id: UUID
    node: Node
    subject: str
    period: Period
    cap: int
    used: int
    held: int
    resets_at: datetime | None
    created_at: datetime


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened once: credits.low, budget.low."""

    notice_id: int
    kind: Literal["credits.low", "budget.low"]
    detail: dict[str, Any]
    created_at: datetime


async def put(connection: Connection, tenant_id: UUID, wanted: BudgetRequest) -> UUID:
    """Sets a cap; lowering it below what is committed refuses new work and ends none.

    Raises Refusal where the subject does not fit the node.
    """
    if (wanted.node == "tenant") != (not wanted.subject):
        message = "empty for a tenant's cap, else the id of a key or a tag"
        raise Refusal(
            "invalid_request",
            f"subject: {message}.",
            errors=[{"path": "$.subject", "message": message}],
        )
    budget_id: UUID = await connection.fetchval(
        SQL.put, tenant_id, ids.new_id(), wanted.node, wanted.subject, wanted.period, wanted.cap
    )
    return budget_id


async def list_all(connection: Connection, tenant_id: UUID) -> list[Budget]:
    rows = await connection.fetch(SQL.list, tenant_id)
    return [msgspec.convert(dict(row), Budget) for row in rows]


async def remove(tx: Connection, tenant_id: UUID, budget_id: UUID) -> None:
    """Takes a cap away; raises Refusal where there is none."""
    await tx.execute(SQL.lock_account, tenant_id)
    if await tx.fetchval(SQL.remove, tenant_id, budget_id) is None:
        raise Refusal("not_found", "There is no such budget.")


async def alert_below(tx: Connection, tenant_id: UUID, credits: int | None) -> None:
    """A notice is made when fewer credits are available; None makes no notices."""
    await tx.execute(SQL.lock_account, tenant_id)
    await tx.execute(SQL.alert_below, tenant_id, credits)
    await tx.execute(SQL.tell, tenant_id)


async def notices(
    connection: Connection, tenant_id: UUID, *, after: int, limit: int
) -> list[Notice]:
    """Notices in the order in which they were made, beyond `after`."""
    rows = await connection.fetch(SQL.notices, tenant_id, after, limit)
    return [msgspec.convert(dict(row), Notice) for row in rows]
