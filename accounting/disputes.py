"""Disputes: a customer contests charged pages, an operator decides by the stored evidence."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from accounting import corrections
from jobs.status import JobNotFound
from jobs.vocabulary import PageStatus
from runtime import sql
from runtime.database import Connection
from runtime.errors import Refusal

SQL = sql.beside(__file__)

DisputeState = Literal["open", "accepted", "rejected"]
Decision = Literal["accepted", "rejected"]


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """How a dispute was decided, and by which key; `correction_id` is its refund, where one was."""

    reason: str
    decided_by: str
    decided_at: datetime
    correction_id: UUID | None


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A contested page as it was stored when the dispute was opened, and what was given back."""

    index: int
    url: str
    final_url: str | None
    status: PageStatus
    http_status: int | None
    content_type: str | None
    content_hash: str | None
    bytes: int | None
    title: str | None
    fetched_at: datetime | None
    credits: int
    entry_id: int
    credits_refunded: int


class DisputeHead(msgspec.Struct, frozen=True, kw_only=True):
    """Who contests what and why, and how it was decided."""

    tenant_id: UUID
    dispute_id: UUID
    job_id: UUID
    reason: str
    opened_by: str
    opened_at: datetime
    state: DisputeState
    decision: Ruling | None
    credits_charged: int
    credits_refunded: int


class Dispute(DisputeHead, frozen=True, kw_only=True):
    """A dispute with the evidence of each of its pages."""

    pages: list[Evidence]


class DisputeLine(DisputeHead, frozen=True, kw_only=True):
    """A dispute as lists show it, with the indexes of its pages."""

    pages: list[int]


class DisputeFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which disputes a list shows; None shows all, which only the system's role may see."""

    tenant_id: UUID | None = None
    job_id: UUID | None = None
    state: DisputeState | None = None


class DisputeNotFound(Refusal):
    def __init__(self) -> None:
        super().__init__("not_found", "There is no such dispute.")


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """Pages of one job, by index, that a customer contests. The id is made before the first try."""

    dispute_id: UUID
    job_id: UUID
    pages: Sequence[int]
    reason: str
    actor: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A decision to make; `correction_id` is the refund's if one is made. `actor` is a key's id."""

    decision: Decision
    reason: str
    actor: str
    correction_id: UUID


async def open_over(connection: Connection, tenant_id: UUID, wanted: Opening) -> None:
    """Opens a dispute over charged pages; safe to repeat as it stands.

    Raises Refusal, with the pages, where one of them was not charged, was refunded, or is in a
    dispute that is still open; and then nothing was opened.
    """
    row = await connection.fetchrow(
        SQL.open,
        tenant_id,
        wanted.dispute_id,
        wanted.job_id,
        sorted(set(wanted.pages)),
        wanted.reason,
        wanted.actor,
    )
    assert row is not None
    if row["outcome"] == "no_job":
        raise JobNotFound
    if row["outcome"] != "opened":
        raise corrections.fault(row["outcome"], row["told"])


async def decide(
    connection: Connection,
    tenant_id: UUID,
    dispute_id: UUID,
    wanted: Verdict,
    *,
    approval_above: int,
) -> bool:
    """Rejects, or accepts and refunds in the same transaction; whether it had been decided so.

    A refund of more than `approval_above` credits waits for another key's approval, and the
    dispute stays open until then. Raises Refusal where it was decided otherwise.
    """
    row = await connection.fetchrow(
        SQL.decide,
        tenant_id,
        dispute_id,
        wanted.decision,
        wanted.reason,
        wanted.actor,
        wanted.correction_id,
        approval_above,
    )
    assert row is not None
    if row["outcome"] == "not_found":
        raise DisputeNotFound
    if row["outcome"] in corrections.FAULTS:
        raise corrections.fault(row["outcome"], row["told"])
    return bool(row["outcome"] == "replayed")


async def read(
    connection: Connection, tenant_id: UUID, dispute_id: UUID, *, job_id: UUID | None = None
) -> Dispute:
    """With its evidence; where a job is named, only if the dispute is over that job."""
    row = await connection.fetchrow(SQL.one, tenant_id, job_id, dispute_id)
    if row is None:
        raise DisputeNotFound
    pages = [
        {"index": page["page_no"], "credits_refunded": page["credits_refunded"], **page["evidence"]}
        for page in await connection.fetch(SQL.evidence, tenant_id, dispute_id)
    ]
    whole = {
        **dict(row),
        "pages": pages,
        "credits_charged": sum(page["credits"] for page in pages),
        "credits_refunded": sum(page["credits_refunded"] for page in pages),
    }
    return msgspec.convert(whole, Dispute)


async def list_after(
    connection: Connection, wanted: DisputeFilter, *, after: UUID | None, limit: int
) -> list[DisputeLine]:
    """Oldest first."""
    rows = await connection.fetch(
        SQL.list, wanted.tenant_id, wanted.job_id, wanted.state, after, limit
    )
    return [msgspec.convert(dict(row), DisputeLine) for row in rows]
