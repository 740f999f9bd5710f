"""Reserving: a job, its hold and its credits begin together, or nothing does."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from accounting import pricing
from accounting.pricing import Terms
from jobs import idempotency, requests
from jobs.requests import JobRequest
from runtime import database, sql
from runtime.database import Connection, Row
from runtime.errors import Refusal

SQL = sql.beside(__file__)


class Seed(msgspec.Struct, frozen=True, kw_only=True):
    """A URL a job begins with; `key` is its canonical key in hexadecimal."""

    url: str
    key: str


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A validated request, ready to be reserved. The job's id is made before the first try."""

    tenant_id: UUID
    job_id: UUID
    key_id: str
    request: JobRequest
    seeds: list[Seed]
    idempotency_key: str | None = None
    parent_job_id: UUID | None = None


class Enqueued(msgspec.Struct, frozen=True, kw_only=True):
    """The job of a submit, and whether an earlier submit had made it."""

    job_id: UUID
    replayed: bool
    credits_reserved: int


class InsufficientCredits(Refusal):
    """Nothing was moved; the answer tells what is missing."""

    def __init__(self, *, required: int, available: int, page_price: int) -> None:
        super().__init__(
            "insufficient_credits",
            f"This reserves {required} credits and {available} are available.",
            required=required,
            available=available,
            max_affordable_pages=available // page_price if page_price else None,
        )


class OverBudget(Refusal):
    """A cap would be overdrawn; the answer names it, and nothing was moved."""

    def __init__(self, budget: dict[str, Any]) -> None:
        whose = f"{budget['node']} {budget['subject']}".strip()
        super().__init__(
            "budget_exhausted",
            f"The {budget['period']} cap of this {whose} is {budget['cap']} credits, of which "
            f"{budget['used']} are used and {budget['held']} held.",
            budget=budget,
        )


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A submission, and the prices and the ceiling that were agreed for it."""

    submission: Submission
    agreed: Terms

    @property
    def credits(self) -> int:
        """What is reserved at once: all of the ceiling, or the first tranche of it."""
        return min(
            self.agreed.ceiling,
            pricing.first_tranche(self.submission.request, self.agreed.prices),
        )


async def enqueue(connection: Connection, submission: Submission, agreed: Terms) -> Enqueued:
    """Reserves and creates the job in one call, or replays it; safe to repeat as it stands.

    Raises InsufficientCredits, OverBudget, or Refusal for a key used with another body, a quote
    that is over, or a suspended tenant.
    """
    (answer,) = await enqueue_together(connection, [Ask(submission=submission, agreed=agreed)])
    if isinstance(answer, Refusal):
        raise answer
    return answer


async def enqueue_together(connection: Connection, asks: Sequence[Ask]) -> list[Enqueued | Refusal]:
    """As enqueue, for several of ONE tenant in one transaction: each one's own answer, in order."""
    rows = await connection.fetch(
        SQL.reserve,
        asks[0].submission.tenant_id,
        database.as_json([_item(ask) for ask in asks]),
    )
    return [_answer(ask, row) for ask, row in zip(asks, rows, strict=True)]


def _item(ask: Ask) -> dict[str, Any]:
    return {
        "job": _job_row(ask.submission, ask.agreed),
        "seeds": ask.submission.seeds,
        "credits": ask.credits,
        "ceiling": ask.agreed.ceiling,
    }


def _answer(ask: Ask, row: Row) -> Enqueued | Refusal:
    match row["outcome"]:
        case "created":
            return Enqueued(job_id=row["found_job"], replayed=False, credits_reserved=ask.credits)
        case "replayed":
            return Enqueued(job_id=row["found_job"], replayed=True, credits_reserved=0)
        case "insufficient":
            return InsufficientCredits(
                required=ask.credits,
                available=row["available_credits"],
                page_price=max(ask.agreed.prices.values()),
            )
    return refusal_of(row)


def refusal_of(row: Row) -> Refusal:
    """What a row's `outcome` refuses, where it is neither of the balance nor an answer."""
    match row["outcome"]:
        case "over_budget":
            return OverBudget(row["refusal"])
        case "conflict":
            return Refusal(
                "idempotency_conflict",
                "This Idempotency-Key was used with another body.",
                job_id=str(row["found_job"]),
            )
        case "quote_expired":
            return requests.invalid("quote_id", "the quote is over, or was for something else")
        case "frozen":
            return Refusal(
                "tenant_suspended",
                "Reservations of this tenant wait until an operator has looked at its ledger.",
            )
    return Refusal("tenant_suspended", "This tenant is suspended.")


def _job_row(submission: Submission, agreed: Terms) -> dict[str, Any]:
    request = submission.request
    return {
        "job_id": submission.job_id,
        "parent_job_id": submission.parent_job_id,
        "key_id": submission.key_id,
        "kind": requests.kind_of(request),
        "idempotency_key": submission.idempotency_key,
        "request_hash": "\\x" + idempotency.request_hash(request).hex(),
        "request": request,
        "tags": request.tags,
        "metadata": request.metadata,
        "price_version": agreed.price_version,
        "prices": agreed.prices,
        "quote_id": request.quote_id,
        "max_pages": request.max_pages,
        "max_credits": request.max_credits,
        "priority": request.priority,
        "timeout_seconds": request.timeout_seconds,
    }
