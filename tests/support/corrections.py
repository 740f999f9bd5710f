"""Makes what corrections are about: finished jobs with charged pages, refunds, adjustments."""

from collections.abc import Awaitable, Sequence
from typing import Any
from uuid import UUID

import pytest

from accounting import corrections, disputes, ledger
from accounting.corrections import Adjustment, Correction, Refund
from accounting.disputes import Opening, Verdict
from accounting.ledger import Entry, EntryFilter
from jobs.vocabulary import PageStatus
from runtime import ids
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders

LIMIT = 10_000
ANN = "adminkeyAnn0"
BOB = "adminkeyBob0"


async def a_finished_job(
    system: Database,
    tenant_id: UUID,
    outcomes: Sequence[PageStatus] = ("succeeded", "succeeded", "failed"),
    *,
    price: int = 1,
    **fields: Any,
) -> UUID:
    """A job whose pages ended so, in the order of their indexes, at a price of its own."""
    job_id = await builders.a_job(system, tenant_id, max_pages=len(outcomes) * price)
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE job SET prices = jsonb_build_object('page', $2::bigint) WHERE job_id = $1",
            job_id,
            price,
        )
        run = await builders.claimed(connection, job_id)
        await builders.finished_pages(connection, run, outcomes, **fields)
    return job_id


async def refund(
    system: Database,
    tenant_id: UUID,
    job_id: UUID,
    pages: Sequence[int],
    *,
    actor: str = ANN,
    limit: int = LIMIT,
    **fields: Any,
) -> tuple[Correction, bool]:
    wanted = Refund(
        job_id=job_id,
        pages=pages,
        **{"reason": "the page was empty", "op_key": str(ids.new_id()), **fields},
    )
    async with system.connection() as connection:
        return await corrections.refund(
            connection, tenant_id, wanted, actor=actor, approval_above=limit
        )


async def adjust(
    system: Database,
    tenant_id: UUID,
    kind: Any,
    amount: int,
    *,
    actor: str = ANN,
    limit: int = LIMIT,
    **fields: Any,
) -> tuple[Correction, bool]:
    wanted = Adjustment(
        kind=kind,
        amount=amount,
        **{"reason": "a mistake", "op_key": str(ids.new_id()), **fields},
    )
    async with system.connection() as connection:
        return await corrections.adjust(
            connection, tenant_id, wanted, actor=actor, approval_above=limit
        )


async def approve(
    system: Database, asked: Correction, *, actor: str = BOB
) -> tuple[Correction, bool]:
    async with system.connection() as connection:
        return await corrections.approve(
            connection, asked.tenant_id, asked.correction_id, actor=actor
        )


async def contest(database: Database, tenant_id: UUID, job_id: UUID, pages: Sequence[int]) -> UUID:
    wanted = Opening(
        dispute_id=ids.new_id(),
        job_id=job_id,
        pages=pages,
        reason="these pages are empty",
        actor=builders.KEY_ID,
    )
    async with database.connection() as connection:
        await disputes.open_over(connection, tenant_id, wanted)
    return wanted.dispute_id


async def decide(
    system: Database,
    tenant_id: UUID,
    dispute_id: UUID,
    decision: Any,
    *,
    actor: str = ANN,
    limit: int = LIMIT,
) -> bool:
    wanted = Verdict(decision=decision, reason="seen", actor=actor, correction_id=ids.new_id())
    async with system.connection() as connection:
        return await disputes.decide(
            connection, tenant_id, dispute_id, wanted, approval_above=limit
        )


async def some_corrections(system: Database, tenant_id: UUID, job_id: UUID) -> None:
    """One of each kind, over a job whose first and third page succeeded."""
    await adjust(system, tenant_id, "adjust_in", 30)
    await adjust(system, tenant_id, "adjust_out", 20)
    await refund(system, tenant_id, job_id, [0])
    dispute_id = await contest(system, tenant_id, job_id, [2])
    await decide(system, tenant_id, dispute_id, "accepted")


async def a_charged_job(
    system: Database, *, credits: int = 100, **fields: Any
) -> tuple[UUID, UUID]:
    """A new tenant, and a finished job of it whose first two pages were charged."""
    tenant = await builders.a_tenant(system, credits=credits)
    return tenant.tenant_id, await a_finished_job(system, tenant.tenant_id, **fields)


async def refused(awaitable: Awaitable[object], code: str) -> Refusal:
    """What was refused, and it must be."""
    with pytest.raises(Refusal) as caught:
        await awaitable
    assert caught.value.code == code, caught.value
    return caught.value


async def entries_of(system: Database, tenant_id: UUID, kind: Any) -> list[Entry]:
    async with system.connection() as connection:
        return await ledger.entries(
            connection, tenant_id, EntryFilter(kind=kind), after=0, limit=100
        )
