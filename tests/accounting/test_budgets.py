"""Caps: no interleaving of submits overshoots a node, and a refusal names it."""

import asyncio
from datetime import timedelta

import pytest

from accounting import budgets, lots
from accounting.lots import Grant
from accounting.reserving import OverBudget
from runtime import clock
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders, work


async def listed(system: Database, tenant_id):
    async with system.connection() as connection:
        return await budgets.list_all(connection, tenant_id)


async def noticed(system: Database, tenant_id):
    async with system.connection() as connection:
        return await budgets.notices(connection, tenant_id, after=0, limit=100)


async def test_fifty_at_once_under_a_cap_for_twenty_are_twenty(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_budget(system, tenant.tenant_id, cap=200)

    answers = await asyncio.gather(
        *(builders.a_job(app, tenant.tenant_id, max_pages=10) for _ in range(50)),
        return_exceptions=True,
    )

    assert sum(isinstance(answer, OverBudget) for answer in answers) == 30
    (budget,) = await listed(system, tenant.tenant_id)
    assert (budget.used, budget.held, budget.cap) == (0, 200, 200)
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 800


async def test_a_refusal_names_node_used_held_cap_and_reset(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_budget(system, tenant.tenant_id, cap=15, period="day")
    await builders.a_job(app, tenant.tenant_id, max_pages=10)
    run = await work.claim(system)
    await work.pages(system, run)
    await work.settle(system, run, [work.ok(0)])

    with pytest.raises(OverBudget) as refused:
        await builders.a_job(app, tenant.tenant_id, max_pages=10)

    budget = refused.value.details["budget"]
    tomorrow = (clock.now() + timedelta(days=1)).date()
    assert (budget["node"], budget["period"], budget["cap"], budget["required"]) == (
        "tenant",
        "day",
        15,
        10,
    )
    assert (budget["used"], budget["held"]) == (1, 9)
    assert budget["resets_at"].startswith(tomorrow.isoformat())
    assert refused.value.code == "budget_exhausted"


async def test_what_a_job_gives_back_can_be_committed_again(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_budget(system, tenant.tenant_id, cap=10, period="total")
    await builders.a_job(app, tenant.tenant_id, max_pages=10)
    run = await work.claim(system)
    await work.pages(system, run)
    await work.settle(system, run, [work.ok(0)])
    await work.finish(system, run)

    await builders.a_job(app, tenant.tenant_id, max_pages=9)
    with pytest.raises(OverBudget):
        await builders.a_job(app, tenant.tenant_id, max_pages=1)

    (budget,) = await listed(system, tenant.tenant_id)
    assert (budget.used, budget.held, budget.resets_at) == (1, 9, None)


async def test_keys_and_tags_have_caps_of_their_own(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_budget(system, tenant.tenant_id, node="tag", subject="blue", cap=10)
    await builders.a_budget(system, tenant.tenant_id, node="key", subject=builders.KEY_ID, cap=30)

    await builders.a_job(app, tenant.tenant_id, max_pages=10, tags=["blue", "red"])
    with pytest.raises(OverBudget, match="tag blue"):
        await builders.a_job(app, tenant.tenant_id, max_pages=1, tags=["blue"])
    await builders.a_job(app, tenant.tenant_id, max_pages=20, tags=["red"])
    with pytest.raises(OverBudget, match=f"key {builders.KEY_ID}"):
        await builders.a_job(app, tenant.tenant_id, max_pages=1)


async def test_a_new_cap_counts_what_its_period_has_committed_so_far(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_job(app, tenant.tenant_id, max_pages=10)

    await builders.a_budget(system, tenant.tenant_id, cap=15)

    with pytest.raises(OverBudget):
        await builders.a_job(app, tenant.tenant_id, max_pages=6)
    await builders.a_job(app, tenant.tenant_id, max_pages=5)


async def test_setting_a_cap_again_changes_it_and_counts_nothing_twice(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    first = await builders.a_budget(system, tenant.tenant_id, cap=15)
    await builders.a_job(app, tenant.tenant_id, max_pages=10)

    second = await builders.a_budget(system, tenant.tenant_id, cap=5)

    (budget,) = await listed(system, tenant.tenant_id)
    assert first == second
    assert (budget.cap, budget.held) == (5, 10)
    with pytest.raises(OverBudget):
        await builders.a_job(app, tenant.tenant_id, max_pages=1)


async def test_a_cap_that_was_taken_away_binds_no_more(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    budget_id = await builders.a_budget(system, tenant.tenant_id, cap=0)
    with pytest.raises(OverBudget):
        await builders.a_job(app, tenant.tenant_id)

    async with app.transaction(tenant.tenant_id) as tx:
        await budgets.remove(tx, tenant.tenant_id, budget_id)

    await builders.a_job(app, tenant.tenant_id)
    with pytest.raises(Refusal):
        async with app.transaction(tenant.tenant_id) as tx:
            await budgets.remove(tx, tenant.tenant_id, budget_id)


@pytest.mark.parametrize(("node", "subject"), [("tenant", "x"), ("key", ""), ("tag", "")])
async def test_a_subject_must_fit_its_node(system: Database, node, subject) -> None:
    tenant = await builders.a_tenant(system)

    with pytest.raises(Refusal, match="subject"):
        await builders.a_budget(system, tenant.tenant_id, node=node, subject=subject)


async def test_four_fifths_of_a_cap_are_told_once(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_budget(system, tenant.tenant_id, cap=100)

    for _ in range(9):
        await builders.a_job(app, tenant.tenant_id, max_pages=10)

    (notice,) = await noticed(system, tenant.tenant_id)
    assert (notice.kind, notice.detail["committed"], notice.detail["cap"]) == (
        "budget.low",
        80,
        100,
    )


async def test_low_credits_are_told_once_and_again_after_a_grant(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=30)
    async with app.transaction(tenant.tenant_id) as tx:
        await budgets.alert_below(tx, tenant.tenant_id, 15)

    for _ in range(3):
        await builders.a_job(app, tenant.tenant_id, max_pages=10)
    assert [n.kind for n in await noticed(system, tenant.tenant_id)] == ["credits.low"]
    async with system.connection() as connection:
        await lots.grant(
            connection, tenant.tenant_id, Grant(amount=20, source="grant", op_key="more")
        )
    await builders.a_job(app, tenant.tenant_id, max_pages=10)

    assert [n.detail["available"] for n in await noticed(system, tenant.tenant_id)] == [10, 10]


async def test_a_cap_of_yesterday_does_not_bind_today(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_budget(system, tenant.tenant_id, cap=10, period="day")
    await builders.a_job(app, tenant.tenant_id, max_pages=10)
    await move_to_yesterday(system, tenant.tenant_id)

    await builders.a_job(app, tenant.tenant_id, max_pages=10)

    (budget,) = await listed(system, tenant.tenant_id)
    assert (budget.held, budget.resets_at.date()) == (
        10,
        (clock.now() + timedelta(days=1)).date(),
    )


async def move_to_yesterday(system: Database, tenant_id) -> None:
    """As if today's commitments had been made yesterday."""
    statements = (
        """INSERT INTO budget_use (tenant_id, budget_id, period_start, committed)
           SELECT tenant_id, budget_id, period_start - interval '1 day', committed
           FROM budget_use WHERE tenant_id = $1""",
        "CREATE TEMP TABLE moved ON COMMIT DROP AS SELECT * FROM hold_budget",
        "DELETE FROM hold_budget WHERE tenant_id = $1",
        """INSERT INTO hold_budget
           SELECT tenant_id, hold_id, budget_id, period_start - interval '1 day'
           FROM moved WHERE tenant_id = $1""",
        """DELETE FROM budget_use
           WHERE tenant_id = $1 AND period_start = date_trunc('day', now(), 'UTC')""",
    )
    async with system.transaction() as tx:
        for statement in statements:
            arguments = [tenant_id] if "$1" in statement else []
            await tx.execute(statement, *arguments)
