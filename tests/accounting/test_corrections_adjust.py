"""Adjustments never go below zero; above the limit another key must approve."""

from datetime import timedelta

import pytest

from accounting import corrections
from runtime import clock
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders, races
from tests.support import corrections as made
from tests.support.corrections import ANN, BOB


async def test_an_adjustment_in_is_a_lot_of_its_own(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=5)

    correction, _ = await made.adjust(system, tenant.tenant_id, "adjust_in", 30)

    balance = await builders.balance_of(system, tenant.tenant_id)
    assert (balance.available, balance.granted) == (35, 35)
    assert {(lot.source, lot.remaining) for lot in balance.lots} == {("grant", 5), ("adjust", 30)}
    entry = (await made.entries_of(system, tenant.tenant_id, "grant"))[-1]
    assert entry.entry_id == correction.entry_id
    assert entry.meta is not None
    assert (entry.meta["reason"], entry.meta["actor"]) == ("a mistake", ANN)


async def test_an_adjustment_out_takes_the_latest_lots_first(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=50)
    soon = clock.now() + timedelta(days=1)
    await builders.a_grant(system, tenant.tenant_id, 30, expires_at=soon)
    await builders.a_grant(system, tenant.tenant_id, 20)

    await made.adjust(system, tenant.tenant_id, "adjust_out", 35)

    balance = await builders.balance_of(system, tenant.tenant_id)
    assert (balance.available, balance.adjusted_out) == (65, 35)
    assert [(lot.amount, lot.remaining) for lot in balance.lots] == [(30, 15), (50, 50)]
    (entry,) = await made.entries_of(system, tenant.tenant_id, "adjust_out")
    assert (entry.debit, entry.credit) == ("available", "issued")
    assert entry.meta is not None
    assert [part["amount"] for part in entry.meta["lots"]] == [20, 15]


async def test_an_adjustment_out_never_goes_below_zero(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=50)
    await builders.a_job(system, tenant.tenant_id, max_pages=20)

    refusal = await made.refused(
        made.adjust(system, tenant.tenant_id, "adjust_out", 31), "insufficient_credits"
    )
    await made.adjust(system, tenant.tenant_id, "adjust_out", 30)

    assert refusal.details == {"required": 31, "available": 30}
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 0


async def test_credits_that_have_expired_cannot_be_taken_out(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=5)
    soon = clock.now() + timedelta(hours=1)
    await builders.a_grant(system, tenant.tenant_id, 7, expires_at=soon)
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE lot SET expires_at = now() - interval '1 s' "
            "WHERE tenant_id = $1 AND expires_at IS NOT NULL",
            tenant.tenant_id,
        )

    refusal = await made.refused(
        made.adjust(system, tenant.tenant_id, "adjust_out", 6), "insufficient_credits"
    )

    assert refusal.details["available"] == 5
    assert (await builders.balance_of(system, tenant.tenant_id)).expired == 7


async def test_fifty_adjustments_out_of_one_balance_take_it_once(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=10)

    answers = await races.at_once(
        system,
        tenant.tenant_id,
        lambda pool, _: made.adjust(pool, tenant.tenant_id, "adjust_out", 10),
    )

    codes = [answer.code for answer in answers if isinstance(answer, Refusal)]
    assert codes == ["insufficient_credits"] * 49
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 0


async def test_one_adjustment_told_fifty_times_at_once_is_one(system: Database) -> None:
    tenant = await builders.a_tenant(system)

    answers = await races.at_once(
        system,
        tenant.tenant_id,
        lambda pool, _: made.adjust(pool, tenant.tenant_id, "adjust_in", 7, op_key="a"),
    )

    told = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert [replayed for _, replayed in told].count(True) == 49
    assert len(told) == 50
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 7


@pytest.mark.parametrize("kind", ["adjust_in", "adjust_out"])
async def test_above_the_limit_an_adjustment_waits_for_another_key(
    system: Database, kind: str
) -> None:
    tenant = await builders.a_tenant(system, credits=20)

    asked, _ = await made.adjust(system, tenant.tenant_id, kind, 11, limit=10)
    waiting = await builders.balance_of(system, tenant.tenant_id)
    done, _ = await made.approve(system, asked, actor=BOB)

    assert (asked.state, asked.needs_approval, asked.entry_id) == ("pending", True, None)
    assert (waiting.available, waiting.granted) == (20, 20)
    assert (done.state, done.requested_by, done.approved_by) == ("done", ANN, BOB)
    moved = 11 if kind == "adjust_in" else -11
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 20 + moved


async def test_at_the_limit_no_approval_is_needed(system: Database) -> None:
    tenant = await builders.a_tenant(system)

    asked, _ = await made.adjust(system, tenant.tenant_id, "adjust_in", 10, limit=10)

    assert (asked.state, asked.needs_approval) == ("done", False)


async def test_a_refund_above_the_limit_waits_as_a_whole(system: Database) -> None:
    tenant_id, job_id = await made.a_charged_job(system)

    asked, _ = await made.refund(system, tenant_id, job_id, [0, 1], limit=1)
    waiting = (await builders.balance_of(system, tenant_id)).refunded
    await made.approve(system, asked)

    assert (asked.state, waiting) == ("pending", 0)
    assert (await builders.balance_of(system, tenant_id)).refunded == 2


async def test_nobody_approves_what_they_asked_for(system: Database) -> None:
    tenant = await builders.a_tenant(system)
    asked, _ = await made.adjust(system, tenant.tenant_id, "adjust_in", 11, limit=10)

    await made.refused(made.approve(system, asked, actor=ANN), "forbidden")

    assert (await builders.balance_of(system, tenant.tenant_id)).available == 0
    with pytest.raises(Exception, match="two_persons"):
        async with system.transaction() as tx:
            await tx.execute(
                "UPDATE correction SET approved_by = requested_by WHERE correction_id = $1",
                asked.correction_id,
            )


async def test_fifty_approvals_at_once_make_it_once(system: Database) -> None:
    tenant = await builders.a_tenant(system)
    asked, _ = await made.adjust(system, tenant.tenant_id, "adjust_in", 11, limit=10)

    answers = await races.at_once(
        system, tenant.tenant_id, lambda pool, _: made.approve(pool, asked)
    )

    told = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert [replayed for _, replayed in told].count(True) == 49
    assert [correction.state for correction, _ in told] == ["done"] * 50
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 11


async def test_fifty_approvals_out_of_one_balance_take_it_once(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=20)
    asked = [
        (await made.adjust(system, tenant.tenant_id, "adjust_out", 11, limit=10))[0]
        for _ in range(races.CALLS)
    ]

    answers = await races.at_once(
        system, tenant.tenant_id, lambda pool, number: made.approve(pool, asked[number])
    )

    codes = [answer.code for answer in answers if isinstance(answer, Refusal)]
    assert codes == ["insufficient_credits"] * 49
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 9


async def test_an_approval_and_a_refusal_at_once_have_one_winner(system: Database) -> None:
    tenant = await builders.a_tenant(system)
    asked, _ = await made.adjust(system, tenant.tenant_id, "adjust_in", 11, limit=10)

    answers = await races.at_once(
        system,
        tenant.tenant_id,
        lambda pool, number: (
            made.approve(pool, asked) if number % 2 else refuse(pool, asked, actor=ANN)
        ),
    )

    won = [one for one in answers if not isinstance(one, BaseException)]
    assert len(won) == 25
    assert len({correction.state for correction, _ in won}) == 1
    assert [replayed for _, replayed in won].count(False) == 1
    lost = [(one.code, one.details["state"]) for one in answers if isinstance(one, Refusal)]
    assert lost == [("invalid_state", won[0][0].state)] * 25
    given = 11 if won[0][0].state == "done" else 0
    assert (await builders.balance_of(system, tenant.tenant_id)).available == given


async def refuse(system: Database, asked, *, actor: str):
    async with system.connection() as connection:
        return await corrections.refuse(
            connection, asked.tenant_id, asked.correction_id, actor=actor, reason="not so"
        )


async def test_what_has_become_impossible_goes_on_waiting(system: Database) -> None:
    tenant_id, job_id = await made.a_charged_job(system, credits=20)
    out, _ = await made.adjust(system, tenant_id, "adjust_out", 15, limit=10)
    back, _ = await made.refund(system, tenant_id, job_id, [0, 1], limit=1)
    await made.refund(system, tenant_id, job_id, [1])
    await made.adjust(system, tenant_id, "adjust_out", 10)

    await made.refused(made.approve(system, out), "insufficient_credits")
    refusal = await made.refused(made.approve(system, back), "invalid_state")
    ended, _ = await refuse(system, back, actor=BOB)

    assert refusal.details["pages"] == [1]
    assert (ended.state, ended.refused_by, ended.refusal) == ("refused", BOB, "not so")
    async with system.connection() as connection:
        waiting = await corrections.list_after(
            connection, tenant_id, "pending", after=None, limit=10
        )
    assert [one.correction_id for one in waiting] == [out.correction_id]


async def test_an_entry_without_a_reason_is_refused_by_the_table(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=5)
    for meta in (None, "{}", '{"reason": "r"}', '{"reason": "", "actor": "a"}'):
        with pytest.raises(Exception, match="corrections_tell_why"):
            async with system.transaction() as tx:
                await tx.execute(
                    "INSERT INTO transfer (tenant_id, kind, debit, credit, amount, op_key, meta)"
                    " VALUES ($1, 'adjust_out', 'available', 'issued', 1, 'x', $2)",
                    tenant.tenant_id,
                    meta,
                )


async def test_the_gateways_role_can_neither_refund_nor_adjust(
    app: Database, system: Database
) -> None:
    tenant_id, job_id = await made.a_charged_job(system)

    with pytest.raises(Exception, match="permission denied"):
        await made.refund(app, tenant_id, job_id, [0])
    with pytest.raises(Exception, match="permission denied"):
        await made.adjust(app, tenant_id, "adjust_in", 5)
    async with app.transaction((await builders.a_tenant(system)).tenant_id) as tx:
        assert await tx.fetchval("SELECT count(*) FROM page_refund") == 0
