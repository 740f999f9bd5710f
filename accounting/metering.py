"""The one place where a job and its credits change together."""

from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

import msgspec

from accounting import pricing, reserving
from jobs import controls, runs
from jobs.outcomes import Facts, Found, PageOutcome
from jobs.records import JobError
from jobs.requests import Extension
from jobs.runs import Claim, Lease
from jobs.status import JobNotFound
from jobs.vocabulary import CompletionReason
from runtime import database, sql
from runtime.database import Connection

SQL = sql.beside(__file__)

Settled = Literal["settled", "stale", "cancelled"]
Finished = Literal["finished", "already", "stale", "unfinished"]


async def top_up(
    connection: Connection, lease: Lease, prices: dict[str, int]
) -> Literal["topped_up", "at_ceiling", "insufficient", "over_budget", "stale"]:
    """A rolling hold's next tranche; anything but `topped_up` has moved nothing."""
    answer: Literal["topped_up", "at_ceiling", "insufficient", "over_budget", "stale"]
    answer = await connection.fetchval(
        SQL.top_up, lease.tenant_id, lease.job_id, lease.token, pricing.tranche(prices)
    )
    return answer


class Flush(msgspec.Struct, frozen=True, kw_only=True):
    """What a run settles at once: finished pages, the URLs they led to, what else it tells."""

    outcomes: Sequence[PageOutcome]
    found: Sequence[Found]
    facts: Facts


class Flushed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a flush, and the URLs that were claimed in the same transaction."""

    answer: Settled
    claims: list[Claim]


async def settle_pages(
    connection: Connection,
    lease: Lease,
    prices: dict[str, int],
    outcomes: Sequence[PageOutcome],
    found: Sequence[Found],
    facts: Facts,
) -> Settled:
    """As settle_and_claim, which claims nothing."""
    flush = Flush(outcomes=outcomes, found=found, facts=facts)
    return (await settle_and_claim(connection, lease, prices, flush, take=0)).answer


async def settle_and_claim(
    connection: Connection,
    lease: Lease,
    prices: dict[str, int],
    flush: Flush,
    *,
    take: int,
    by_level: bool = False,
) -> Flushed:
    """Writes outcomes, charges, releases, children and counters in one transaction, or nothing.

    Anything but `settled` means that the run has lost its job and must throw its pages away.
    Up to `take` URLs are claimed with it, as runs.claim_pages would right after.
    """
    rows = await connection.fetch(
        SQL.settle_pages,
        lease.tenant_id,
        lease.job_id,
        lease.token,
        database.as_json([_page_row(outcome, prices) for outcome in flush.outcomes]),
        database.as_json(flush.found),
        database.as_json(flush.facts),
        take,
        by_level,
    )
    claims = [runs.claim_of(row) for row in rows if row["page_no"] is not None]
    return Flushed(answer=rows[0]["answer"], claims=claims)


async def finish(
    connection: Connection,
    lease: Lease,
    reason: CompletionReason,
    error: JobError | None = None,
    *,
    extensions: int | None = None,
) -> Finished:
    """Ends the job of a run: what is open is skipped, the hold closed, retention begun.

    `extensions` is how often the job had been extended when the run last looked: `unfinished` and
    nothing has changed where it was extended since.
    """
    told = None if error is None else database.as_json(error)
    whose = (lease.tenant_id, lease.job_id, lease.token, reason, told)
    answer: Finished
    if extensions is None:
        answer = await connection.fetchval(SQL.finish, *whose)
    else:
        answer = await connection.fetchval(SQL.finish_run, *whose, extensions)
    return answer


async def extend(connection: Connection, tenant_id: UUID, job_id: UUID, wanted: Extension) -> int:
    """The further credits that are held for it; the same call again holds no more.

    Raises JobNotFound, InvalidState, InsufficientCredits, OverBudget, or Refusal of a tenant that
    may reserve nothing now; then nothing has changed.
    """
    row = await connection.fetchrow(
        SQL.extend,
        tenant_id,
        job_id,
        wanted.max_pages,
        wanted.timeout_seconds,
        wanted.max_credits,
        pricing.TRANCHE_PAGES,
    )
    assert row is not None
    if controls.checked(row["outcome"], "cannot be extended") == "extended":
        return int(row["moved"])
    if row["outcome"] == "insufficient":
        raise reserving.InsufficientCredits(
            required=row["refusal"]["required"], available=row["available_credits"], page_price=0
        )
    raise reserving.refusal_of(row)


async def resume_funded(connection: Connection, *, limit: int) -> list["Swept"]:
    """Resumes jobs that waited for credits where there are some now."""
    rows = await connection.fetch(SQL.resume_funded, limit, pricing.TRANCHE_PAGES)
    return [msgspec.convert(dict(row), Swept) for row in rows]


async def cancel(connection: Connection, tenant_id: UUID, job_id: UUID) -> str:
    """The state after it; from its commit on no page of the job can be charged."""
    state: str = await connection.fetchval(SQL.cancel, tenant_id, job_id)
    if state == "not_found":
        raise JobNotFound
    return state


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """A job that a sweep took; with a `fault` it could not be ended and stays as it was."""

    tenant: UUID
    job: UUID
    reason: str = ""
    fault: str | None


async def sweep_overdue(connection: Connection, *, limit: int) -> list[Swept]:
    """Ends jobs past their queue limit or deadline, each by itself."""
    rows = await connection.fetch(SQL.sweep_overdue, limit)
    return [msgspec.convert(dict(row), Swept) for row in rows]


async def settle_orphans(connection: Connection, *, limit: int) -> list[Swept]:
    """Closes the holds of final jobs that a crash left open, each by itself."""
    rows = await connection.fetch(SQL.settle_orphans, limit)
    return [msgspec.convert(dict(row), Swept) for row in rows]


def _page_row(outcome: PageOutcome, prices: dict[str, int]) -> dict[str, Any]:
    row = msgspec.structs.asdict(outcome)
    row["state"] = row.pop("status")
    row["outcome"] = (outcome.outcome or "page") if outcome.status == "succeeded" else None
    row["credits"] = pricing.page_credits(outcome.status, outcome.outcome, prices)
    return row
