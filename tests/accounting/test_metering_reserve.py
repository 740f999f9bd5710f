"""Enqueue: the job, its hold and its seeds begin together, or nothing moves."""

import asyncio
from datetime import timedelta

import pytest

from accounting import pricing, reserving, tenants
from accounting.reserving import Enqueued, InsufficientCredits, Submission
from runtime import clock
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders, work


async def enqueue(database: Database, submission: Submission) -> Enqueued:
    async with database.connection() as connection:
        agreed = pricing.terms(submission.request, await pricing.current(connection))
        return await reserving.enqueue(connection, submission, agreed)


async def rows_of(system: Database, tenant_id, *tables: str) -> list[int]:
    async with system.connection() as connection:
        return [
            await connection.fetchval(
                f"SELECT count(*) FROM {table} WHERE tenant_id = $1", tenant_id
            )
            for table in tables
        ]


async def test_the_worst_case_moves_from_available_to_held(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=100)

    made = await enqueue(app, builders.a_submission(tenant.tenant_id, max_pages=30))

    balance = await builders.balance_of(system, tenant.tenant_id)
    job = await work.status_of(app, tenant.tenant_id, made.job_id)
    assert (balance.available, balance.held) == (70, 30)
    assert (job.state, job.usage.credits_reserved, job.usage.settlement_pending) == (
        "queued",
        30,
        True,
    )
    assert (job.progress.discovered, job.progress.admitted, job.progress.queued) == (1, 1, 1)
    assert job.deadline_at - job.created_at == timedelta(minutes=30, seconds=300)


async def test_a_refused_reserve_moves_nothing(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=29)

    with pytest.raises(InsufficientCredits) as refused:
        await enqueue(app, builders.a_submission(tenant.tenant_id, max_pages=30))

    assert refused.value.details == {"required": 30, "available": 29, "max_affordable_pages": 29}
    assert await rows_of(system, tenant.tenant_id, "job", "hold", "page") == [0, 0, 0]
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 29


async def test_a_refusal_is_not_remembered(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system)
    submission = builders.a_submission(tenant.tenant_id, idempotency_key="k")
    with pytest.raises(InsufficientCredits):
        await enqueue(app, submission)
    await builders.a_grant(system, tenant.tenant_id, 10)

    assert not (await enqueue(app, submission)).replayed


async def test_fifty_at_once_on_a_balance_for_twenty_are_twenty(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=200)
    submissions = [builders.a_submission(tenant.tenant_id, max_pages=10) for _ in range(50)]

    answers = await asyncio.gather(
        *(enqueue(app, submission) for submission in submissions), return_exceptions=True
    )

    assert sum(isinstance(answer, Enqueued) for answer in answers) == 20
    assert sum(isinstance(answer, InsufficientCredits) for answer in answers) == 30
    balance = await builders.balance_of(system, tenant.tenant_id)
    assert (balance.available, balance.held) == (0, 200)


async def test_fifty_equal_submits_with_one_key_are_one_job(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    submissions = [
        builders.a_submission(tenant.tenant_id, idempotency_key="same") for _ in range(50)
    ]

    answers = await asyncio.gather(*(enqueue(app, submission) for submission in submissions))

    assert len({answer.job_id for answer in answers}) == 1
    assert [answer.replayed for answer in answers].count(False) == 1
    assert await rows_of(system, tenant.tenant_id, "job", "hold") == [1, 1]
    assert (await builders.balance_of(system, tenant.tenant_id)).held == 10


async def test_a_key_with_another_body_is_a_conflict_that_names_the_job(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    first = await enqueue(app, builders.a_submission(tenant.tenant_id, idempotency_key="k"))

    with pytest.raises(Refusal) as refused:
        await enqueue(
            app, builders.a_submission(tenant.tenant_id, idempotency_key="k", max_pages=11)
        )

    assert refused.value.code == "idempotency_conflict"
    assert refused.value.details == {"job_id": str(first.job_id)}
    assert (await builders.balance_of(system, tenant.tenant_id)).held == 10


async def test_a_call_whose_commit_was_in_doubt_is_repeated_safely(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    submission = builders.a_submission(tenant.tenant_id)

    answers = [await enqueue(app, submission) for _ in range(3)]

    assert {answer.job_id for answer in answers} == {submission.job_id}
    assert not any(answer.replayed for answer in answers)
    assert (await builders.balance_of(system, tenant.tenant_id)).held == 10


async def test_the_same_key_of_another_tenant_is_another_job(
    app: Database, system: Database
) -> None:
    first, second = [await builders.a_tenant(system, credits=10) for _ in range(2)]

    made = [
        await enqueue(app, builders.a_submission(tenant.tenant_id, idempotency_key="k"))
        for tenant in (first, second)
    ]

    assert made[0].job_id != made[1].job_id


async def test_the_soonest_to_expire_is_spent_first(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=10)
    later = await builders.a_grant(
        system, tenant.tenant_id, 10, expires_at=clock.now() + timedelta(days=2)
    )
    sooner = await builders.a_grant(
        system, tenant.tenant_id, 10, expires_at=clock.now() + timedelta(days=1)
    )

    job_id = await builders.a_job(app, tenant.tenant_id, max_pages=15)

    async with system.connection() as connection:
        rows = await connection.fetch(
            "SELECT lot_id, reserved FROM hold_allocation WHERE hold_id = $1 ORDER BY position",
            job_id,
        )
    assert [(row["lot_id"], row["reserved"]) for row in rows] == [(sooner, 10), (later, 5)]


async def test_expired_credits_cannot_be_reserved(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=5)
    lot = await builders.a_grant(
        system, tenant.tenant_id, 100, expires_at=clock.now() + timedelta(days=1)
    )
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE lot SET expires_at = now() - interval '1 s' WHERE lot_id = $1", lot
        )

    with pytest.raises(InsufficientCredits) as refused:
        await enqueue(app, builders.a_submission(tenant.tenant_id, max_pages=10))

    assert refused.value.details["available"] == 5


async def test_a_suspended_tenant_is_refused(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    async with system.connection() as connection:
        await tenants.change(connection, tenant.tenant_id, status="suspended")

    with pytest.raises(Refusal) as refused:
        await enqueue(app, builders.a_submission(tenant.tenant_id))

    assert refused.value.code == "tenant_suspended"


async def test_the_customers_own_ceiling_is_all_that_is_held(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=100)

    made = await enqueue(app, builders.a_submission(tenant.tenant_id, max_pages=50, max_credits=7))

    assert made.credits_reserved == 7
    assert (await builders.balance_of(system, tenant.tenant_id)).held == 7


async def test_a_job_keeps_the_prices_it_was_submitted_under(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    async with system.transaction() as tx:
        book = await pricing.publish(
            tx, [pricing.PriceLine(kind="crawl", outcome="page", credits=3)]
        )
    first = await builders.a_job(app, tenant.tenant_id, max_pages=10)
    async with system.transaction() as tx:
        await pricing.publish(tx, [pricing.PriceLine(kind="crawl", outcome="page", credits=1)])

    run = await work.claim(system)

    assert run.lease.job_id == first
    assert run.prices == {"page": 3}
    assert book.version == 2
    assert (await work.status_of(app, tenant.tenant_id, first)).usage.credits_reserved == 30
