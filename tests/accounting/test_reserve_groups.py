"""Submits that come together: one transaction, and to each its own answer."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import asyncpg
import msgspec
import pytest_asyncio

from accounting import pricing
from accounting.reserve_groups import GROUP_MAX, ReserveGroups
from accounting.reserving import Enqueued, InsufficientCredits, OverBudget, Submission
from runtime.database import Database
from runtime.errors import Refusal, Unavailable
from tests.support import builders

SECONDS = 5.0


@pytest_asyncio.fixture
async def groups(app: Database) -> AsyncIterator[ReserveGroups]:
    made = ReserveGroups(app, seconds=SECONDS)
    yield made
    await made.close()


async def submit_all(
    groups: ReserveGroups, database: Database, submissions: Sequence[Submission]
) -> list[Enqueued | BaseException]:
    """All at once, in order; what each was answered."""
    async with database.connection() as connection:
        book = await pricing.current(connection)
    return await asyncio.gather(
        *(groups.enqueue(one, pricing.terms(one.request, book)) for one in submissions),
        return_exceptions=True,
    )


async def transactions_of(system: Database, tenant_id: UUID) -> int:
    async with system.connection() as connection:
        count: int = await connection.fetchval(
            "SELECT count(DISTINCT xid) FROM transfer WHERE tenant_id = $1 AND kind = 'reserve'",
            tenant_id,
        )
    return count


async def test_those_that_wait_share_a_transaction(
    app: Database, system: Database, groups: ReserveGroups
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    submissions = [builders.a_submission(tenant.tenant_id) for _ in range(GROUP_MAX + 1)]

    answers = await submit_all(groups, app, submissions)

    assert [one.job_id for one in answers if isinstance(one, Enqueued)] == [
        one.job_id for one in submissions
    ]
    assert await transactions_of(system, tenant.tenant_id) == 2
    left = await builders.footprint(system, tenant.tenant_id)
    assert (left.jobs, left.holds, left.available) == (51, 51, 1_000 - 51 * 10)


async def test_credits_for_some_go_to_those_who_came_first(
    app: Database, system: Database, groups: ReserveGroups
) -> None:
    tenant = await builders.a_tenant(system, credits=25)
    submissions = [builders.a_submission(tenant.tenant_id, max_pages=n) for n in (10, 20, 10, 5)]

    first, second, third, fourth = await submit_all(groups, app, submissions)

    assert [type(one) for one in (first, third, fourth)] == [Enqueued, Enqueued, Enqueued]
    assert isinstance(second, InsufficientCredits)
    assert (second.details["required"], second.details["available"]) == (20, 15)
    assert (await builders.footprint(system, tenant.tenant_id)).available == 0


async def test_a_group_takes_from_the_lots_in_order(
    app: Database, system: Database, groups: ReserveGroups
) -> None:
    tenant = await builders.a_tenant(system)
    for amount in (4, 7, 30):
        await builders.a_grant(system, tenant.tenant_id, amount)
    submissions = [builders.a_submission(tenant.tenant_id, max_pages=n) for n in (10, 3, 12)]

    await submit_all(groups, app, submissions)

    async with system.connection() as connection:
        rows = await connection.fetch(
            "SELECT a.hold_id, a.position, a.reserved, l.amount FROM hold_allocation a"
            " JOIN lot l USING (tenant_id, lot_id) WHERE a.tenant_id = $1 ORDER BY l.lot_id, 1",
            tenant.tenant_id,
        )
    by_job = [
        [(row["amount"], row["reserved"]) for row in rows if row["hold_id"] == one.job_id]
        for one in submissions
    ]
    assert by_job == [[(4, 4), (7, 6)], [(7, 1), (30, 2)], [(30, 12)]]
    assert [row["position"] for row in rows] == [1, 2, 1, 2, 1]


async def test_twins_in_one_group_are_one_job(
    app: Database, system: Database, groups: ReserveGroups
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    one = builders.a_submission(tenant.tenant_id, idempotency_key="key")
    twin = builders.a_submission(tenant.tenant_id, idempotency_key="key")
    other = builders.a_submission(tenant.tenant_id, idempotency_key="key", max_pages=11)

    bystander = builders.a_submission(tenant.tenant_id)
    made, replayed, refused, _ = await submit_all(groups, app, [one, twin, other, bystander])

    assert made == Enqueued(job_id=one.job_id, replayed=False, credits_reserved=10)
    assert replayed == Enqueued(job_id=one.job_id, replayed=True, credits_reserved=0)
    assert isinstance(refused, Refusal)
    assert refused.code == "idempotency_conflict"
    assert (await builders.footprint(system, tenant.tenant_id)).available == 980
    assert await transactions_of(system, tenant.tenant_id) == 1


async def test_a_group_whose_answer_was_lost_is_told_the_same_again(
    app: Database, system: Database, groups: ReserveGroups
) -> None:
    tenant = await builders.a_tenant(system, credits=25)
    submissions = [
        builders.a_submission(tenant.tenant_id, idempotency_key=key) for key in ("a", None, "c")
    ]

    told = await submit_all(groups, app, submissions)
    again = await submit_all(groups, app, submissions)

    assert told[:2] == again[:2]
    assert [isinstance(one, InsufficientCredits) for one in (told[2], again[2])] == [True, True]
    assert (await builders.footprint(system, tenant.tenant_id)).available == 5


async def test_a_cap_holds_within_a_group(
    app: Database, system: Database, groups: ReserveGroups
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_budget(system, tenant.tenant_id, cap=25)
    submissions = [builders.a_submission(tenant.tenant_id) for _ in range(4)]

    answers = await submit_all(groups, app, submissions)

    assert [type(one) for one in answers] == [Enqueued, Enqueued, OverBudget, OverBudget]
    assert (await builders.footprint(system, tenant.tenant_id)).available == 980


async def test_one_that_cannot_be_stored_fails_alone(
    app: Database, system: Database, groups: ReserveGroups
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    submissions = [builders.a_submission(tenant.tenant_id) for _ in range(3)]
    submissions[1] = msgspec.structs.replace(submissions[1], idempotency_key="k" * 256)

    first, second, third = await submit_all(groups, app, submissions)

    assert isinstance(second, asyncpg.CheckViolationError)
    assert [type(first), type(third)] == [Enqueued, Enqueued]
    assert (await builders.footprint(system, tenant.tenant_id)).jobs == 2


async def test_who_has_gone_away_before_is_not_reserved(
    app: Database, system: Database, groups: ReserveGroups
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    staying, leaving = (builders.a_submission(tenant.tenant_id) for _ in range(2))
    async with app.connection() as connection:
        book = await pricing.current(connection)
    async with system.transaction() as tx:
        await tx.execute("SELECT FROM account WHERE tenant_id = $1 FOR UPDATE", tenant.tenant_id)
        stays = asyncio.create_task(groups.enqueue(staying, pricing.terms(staying.request, book)))
        await tx.fetchval("SELECT 1")  # long enough for the first group to be on its way
        leaves = asyncio.create_task(groups.enqueue(leaving, pricing.terms(leaving.request, book)))
        await asyncio.sleep(0)
        leaves.cancel()
    assert (await stays).job_id == staying.job_id
    await asyncio.wait({leaves})

    await submit_all(groups, app, [staying])
    assert leaves.cancelled()
    assert (await builders.footprint(system, tenant.tenant_id)).jobs == 1


async def test_a_tenant_does_not_wait_for_another(
    app: Database, system: Database, groups: ReserveGroups
) -> None:
    slow, quick = [await builders.a_tenant(system, credits=100) for _ in range(2)]
    async with system.transaction() as tx:
        await tx.execute("SELECT FROM account WHERE tenant_id = $1 FOR UPDATE", slow.tenant_id)
        waiting = asyncio.create_task(
            submit_all(groups, app, [builders.a_submission(slow.tenant_id)])
        )
        (made,) = await submit_all(groups, app, [builders.a_submission(quick.tenant_id)])
        assert isinstance(made, Enqueued)
        assert not waiting.done()
    (late,) = await waiting
    assert isinstance(late, Enqueued)


async def test_all_of_a_group_are_told_that_the_database_is_away(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    nowhere = Database("postgresql://nobody@/nothing?host=/nonexistent", role="nobody", size=1)
    await nowhere.open()
    groups = ReserveGroups(nowhere, seconds=0)

    answers = await submit_all(
        groups, system, [builders.a_submission(tenant.tenant_id) for _ in range(3)]
    )

    assert [type(one) for one in answers] == [Unavailable] * 3
    await groups.close()
    await nowhere.close()
