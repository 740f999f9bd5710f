"""Why credits moved: from an entry to its job and the evidence of its pages, and back."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from accounting.ledger import Entry
from jobs.status import JobNotFound
from jobs.vocabulary import Kind, PageOutcomeWord, PageState, Reason, State
from runtime import sql
from runtime.database import Connection, Row
from runtime.errors import Refusal

SQL = sql.beside(__file__)


class PageEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of a page: enough to see whether its charge is right.

    `content_hash` is the SHA-256 of the content in hexadecimal; it stays when the content is gone.
    """

    index: int
    url: str
    final_url: str | None
    status: PageState
    reason: Reason | None
    detail: str | None
    outcome: PageOutcomeWord | None
    http_status: int | None
    content_type: str | None
    title: str | None
    bytes: int | None
    content_hash: str | None
    fetched_at: datetime | None
    settled_at: datetime | None
    credits: int
    entry_id: int | None


class ExplainedJob(msgspec.Struct, frozen=True, kw_only=True):
    """The job that an entry belongs to, with the prices that it froze."""

    job_id: UUID
    kind: Kind
    state: State
    key_id: str
    tags: list[str]
    max_pages: int
    price_version: int
    prices: dict[str, int]
    created_at: datetime
    finished_at: datetime | None


class ExplainedLot(msgspec.Struct, frozen=True, kw_only=True):
    """The lot that an entry filled or emptied."""

    lot_id: UUID
    source: str
    amount: int
    remaining: int
    expires_at: datetime | None
    created_at: datetime


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """An entry in a sentence, with what stands behind it; `next` is null after the last page."""

    sentence: str
    entry: Entry | None
    job: ExplainedJob | None
    lot: ExplainedLot | None
    pages: list[PageEvidence]
    next: int | None


async def of_entry(
    snapshot: Connection, tenant_id: UUID, entry_id: int, *, after: int, limit: int
) -> Explanation:
    """Raises Refusal `not_found` for an entry that the tenant does not have."""
    entry = await _entry(snapshot, tenant_id, entry_id)
    job = None if entry.job_id is None else await _job(snapshot, tenant_id, entry.job_id)
    rows = await _pages(snapshot, tenant_id, entry, after=after, limit=limit + 1)
    pages = [evidence(row) for row in rows[:limit]]
    return Explanation(
        sentence=sentence(entry, job),
        entry=entry,
        job=job,
        lot=await _lot(snapshot, tenant_id, entry.lot_id),
        pages=pages,
        next=pages[-1].index if len(rows) > limit else None,
    )


async def of_page(snapshot: Connection, tenant_id: UUID, job_id: UUID, index: int) -> Explanation:
    """The way back, from a page to its charge; raises Refusal where there is no such page."""
    job = await _job(snapshot, tenant_id, job_id)
    if job is None:
        raise JobNotFound
    row = await snapshot.fetchrow(SQL.page, tenant_id, job_id, index)
    if row is None:
        raise Refusal("not_found", "The job has no such page.")
    page = evidence(row)
    entry = None
    if page.entry_id is not None:
        entry = await _entry(snapshot, tenant_id, page.entry_id)
    return Explanation(
        sentence=page_sentence(page), entry=entry, job=job, lot=None, pages=[page], next=None
    )


def evidence(row: Row) -> PageEvidence:
    return msgspec.convert(dict(row), PageEvidence)


def sentence(entry: Entry, job: ExplainedJob | None) -> str:
    """The rule that made the entry, in words."""
    said = {
        "grant": "were given to the tenant, in a lot of their own",
        "reserve": "were set aside for a job: the most that it could still cost",
        "charge": "were charged for pages that succeeded, each at the price that its job froze",
        "release": "went back to the balance: their job can no longer charge them",
        "expire": "expired with their lot, unused",
        "refund": "of an earlier charge were given back, in a lot of their own",
        "adjust_out": "were taken out of the balance by an operator",
    }[entry.kind]
    version = "" if job is None else f" (price version {job.price_version})"
    return f"{entry.amount} credits {said}{version}."


def page_sentence(page: PageEvidence) -> str:
    if page.settled_at is None:
        return "The page is not finished, and nothing was charged for it so far."
    if page.entry_id is None:
        why = "succeeded at a price of 0" if page.status == "succeeded" else page.status
        return f"The page {why}: nothing was charged for it."
    return f"The page succeeded and cost {page.credits} credits, charged by entry {page.entry_id}."


async def _entry(snapshot: Connection, tenant_id: UUID, entry_id: int) -> Entry:
    row = await snapshot.fetchrow(SQL.entry, tenant_id, entry_id)
    if row is None:
        raise Refusal("not_found", "There is no such entry.")
    values: dict[str, Any] = dict(row)
    return Entry(entry_id=values.pop("transfer_id"), job_id=values.pop("hold_id"), **values)


async def _job(snapshot: Connection, tenant_id: UUID, job_id: UUID) -> ExplainedJob | None:
    row = await snapshot.fetchrow(SQL.job, tenant_id, job_id)
    return None if row is None else msgspec.convert(dict(row), ExplainedJob)


async def _lot(snapshot: Connection, tenant_id: UUID, lot_id: UUID | None) -> ExplainedLot | None:
    row = None if lot_id is None else await snapshot.fetchrow(SQL.lot, tenant_id, lot_id)
    return None if row is None else msgspec.convert(dict(row), ExplainedLot)


async def _pages(
    snapshot: Connection, tenant_id: UUID, entry: Entry, *, after: int, limit: int
) -> list[Row]:
    if entry.kind == "charge":
        return await snapshot.fetch(
            SQL.charged_pages, tenant_id, entry.job_id, entry.entry_id, after, limit
        )
    if entry.kind == "refund":
        return await snapshot.fetch(SQL.refunded_pages, tenant_id, entry.entry_id, after, limit)
    return []
