"""Refunds of pages and adjustments: each a new entry with its reason and who asked for it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from accounting.tenants import TenantNotFound
from jobs.status import JobNotFound
from runtime import database, ids, sql
from runtime.database import Connection
from runtime.errors import Refusal

SQL = sql.beside(__file__)

CorrectionKind = Literal["adjust_in", "adjust_out", "refund"]
CorrectionState = Literal["pending", "done", "refused"]

FAULTS = {
    "unknown_page": ("invalid_request", "The job has no page {pages}."),
    "too_much": ("invalid_request", "Page {pages} was charged less than is to be refunded."),
    "not_charged": ("invalid_state", "Page {pages} was not charged."),
    "refunded": ("invalid_state", "Page {pages} has been refunded already."),
    "under_dispute": ("invalid_state", "Page {pages} is in a dispute that is still open."),
    "insufficient": (
        "insufficient_credits",
        "{required} credits cannot be taken out: {available} are available.",
    ),
    "own": ("forbidden", "Another admin key than the one that asked for it must approve this."),
    "decided": ("invalid_state", "This has been decided already: {state}."),
    "waiting": ("invalid_state", "The refund of this dispute waits for its approval; refuse that."),
}
"""Outcomes of the SQL functions that moved nothing: the code and the sentence for the caller."""


class Adjustment(msgspec.Struct, frozen=True, kw_only=True):
    """Credits to give or to take back; the same op_key again does nothing more."""

    kind: Literal["adjust_in", "adjust_out"]
    amount: int
    reason: str
    op_key: str


class Refund(msgspec.Struct, frozen=True, kw_only=True):
    """Pages of one job, by index, to give back the whole charge of, or `page_credits` each."""

    job_id: UUID
    pages: Sequence[int]
    reason: str
    op_key: str
    page_credits: int | None = None


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for, by which key, and what became of it; `entry_id` once it is done."""

    tenant_id: UUID
    correction_id: UUID
    kind: CorrectionKind
    amount: int
    reason: str
    state: CorrectionState
    needs_approval: bool
    requested_by: str
    requested_at: datetime
    approved_by: str | None
    refused_by: str | None
    refusal: str | None
    decided_at: datetime | None
    job_id: UUID | None
    pages: list[int] | None
    page_credits: int | None
    op_key: str | None
    dispute_id: UUID | None
    entry_id: int | None


class CorrectionNotFound(Refusal):
    def __init__(self) -> None:
        super().__init__("not_found", "There is no such correction.")


async def adjust(
    connection: Connection,
    tenant_id: UUID,
    wanted: Adjustment,
    *,
    actor: str,
    approval_above: int,
    correction_id: UUID | None = None,
) -> tuple[Correction, bool]:
    """Made, or pending above so many credits; and whether it is a replay. Safe to repeat.

    `actor` is the id of the admin key that asks. Raises Refusal, and then nothing has moved.
    """
    asked = {"correction_id": correction_id or ids.new_id(), **msgspec.structs.asdict(wanted)}
    return await _request(connection, tenant_id, {**asked, "requested_by": actor}, approval_above)


async def refund(
    connection: Connection,
    tenant_id: UUID,
    wanted: Refund,
    *,
    actor: str,
    approval_above: int,
    correction_id: UUID | None = None,
) -> tuple[Correction, bool]:
    """All of the pages or none, each at most once and at most its charge; else as adjust()."""
    asked = {
        "correction_id": correction_id or ids.new_id(),
        "kind": "refund",
        "job_id": wanted.job_id,
        "page_nos": sorted(set(wanted.pages)),
        "page_credits": wanted.page_credits,
        "reason": wanted.reason,
        "op_key": wanted.op_key,
        "requested_by": actor,
    }
    return await _request(connection, tenant_id, asked, approval_above)


async def approve(
    connection: Connection, tenant_id: UUID, correction_id: UUID, *, actor: str
) -> tuple[Correction, bool]:
    """Makes a pending correction; and whether it had been made.

    Raises Refusal `forbidden` for the key that asked, and as refund() and adjust() do where it
    cannot be made now: it then stays pending.
    """
    return await _decide(connection, tenant_id, correction_id, actor=actor, refusal=None)


async def refuse(
    connection: Connection, tenant_id: UUID, correction_id: UUID, *, actor: str, reason: str
) -> tuple[Correction, bool]:
    """Ends a pending correction without moving anything; who asked may do so too."""
    return await _decide(connection, tenant_id, correction_id, actor=actor, refusal=reason)


async def read(connection: Connection, tenant_id: UUID, correction_id: UUID) -> Correction:
    row = await connection.fetchrow(SQL.one, tenant_id, correction_id)
    if row is None:
        raise CorrectionNotFound
    return msgspec.convert(dict(row), Correction)


async def list_after(
    connection: Connection,
    tenant_id: UUID | None,
    state: CorrectionState | None,
    *,
    after: UUID | None,
    limit: int,
) -> list[Correction]:
    """Oldest first; of all tenants where none is named, which only the system's role may see."""
    rows = await connection.fetch(SQL.list, tenant_id, state, after, limit)
    return [msgspec.convert(dict(row), Correction) for row in rows]


def fault(outcome: str, told: dict[str, Any] | None) -> Refusal:
    """What the caller is told of an outcome that moved nothing."""
    details = told or {}
    code, sentence = FAULTS[outcome]
    words = {**details, "pages": ", ".join(map(str, details.get("pages", [])))}
    message = sentence.format_map(words)
    if code == "invalid_request":
        return Refusal(code, message, errors=[{"path": "$.pages", "message": message}], **details)
    return Refusal(code, message, **details)


async def _request(
    connection: Connection, tenant_id: UUID, asked: dict[str, Any], approval_above: int
) -> tuple[Correction, bool]:
    row = await connection.fetchrow(SQL.request, tenant_id, database.as_json(asked), approval_above)
    assert row is not None
    outcome, found = row["outcome"], row["found_correction"]
    if outcome == "no_tenant":
        raise TenantNotFound
    if outcome == "no_job":
        raise JobNotFound
    if outcome == "conflict":
        raise Refusal(
            "idempotency_conflict",
            "This op_key was used for another correction.",
            correction_id=str(found),
        )
    if found is None:
        raise fault(outcome, row["told"])
    return await read(connection, tenant_id, found), outcome == "replayed"


async def _decide(
    connection: Connection,
    tenant_id: UUID,
    correction_id: UUID,
    *,
    actor: str,
    refusal: str | None,
) -> tuple[Correction, bool]:
    row = await connection.fetchrow(SQL.decide, tenant_id, correction_id, actor, refusal)
    assert row is not None
    outcome = row["outcome"]
    if outcome == "not_found":
        raise CorrectionNotFound
    if outcome in FAULTS:
        raise fault(outcome, row["told"])
    return await read(connection, tenant_id, correction_id), outcome == "replayed"
