"""Refunds: a page once and at most its charge, all pages of a call or none."""

import pytest

from accounting import corrections
from runtime import ids
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders, races, work
from tests.support import corrections as made
from tests.support.corrections import ANN


async def test_a_refund_gives_the_charge_back_in_a_lot_that_never_expires(
    system: Database,
) -> None:
    tenant_id, job_id = await made.a_charged_job(system)
    before = await builders.balance_of(system, tenant_id)

    correction, replayed = await made.refund(system, tenant_id, job_id, [0, 1])

    after = await builders.balance_of(system, tenant_id)
    assert (correction.state, correction.amount, replayed) == ("done", 2, False)
    assert (after.available, after.refunded) == (before.available + 2, 2)
    assert (after.granted, after.charged_lifetime) == (before.granted, before.charged_lifetime)
    lot = next(lot for lot in after.lots if lot.source == "refund")
    assert (lot.amount, lot.remaining, lot.expires_at) == (2, 2, None)


async def test_a_refunds_entry_tells_the_job_the_reason_and_who(system: Database) -> None:
    tenant_id, job_id = await made.a_charged_job(system)

    correction, _ = await made.refund(system, tenant_id, job_id, [1], reason="a soft 404")

    (entry,) = await made.entries_of(system, tenant_id, "refund")
    assert (entry.entry_id, entry.job_id) == (correction.entry_id, job_id)
    assert (entry.debit, entry.credit, entry.amount) == ("charged", "available", 1)
    assert entry.meta == {
        "correction_id": str(correction.correction_id),
        "reason": "a soft 404",
        "actor": ANN,
        "pages": [1],
    }


async def test_a_final_job_stays_as_it_was(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, tenant.tenant_id, max_pages=2)
    async with system.connection() as connection:
        run = await builders.claimed(connection, job_id)
        await builders.finished_pages(connection, run, ["succeeded", "succeeded"])
    await work.finish(system, run)
    before = await work.status_of(system, tenant.tenant_id, job_id)

    await made.refund(system, tenant.tenant_id, job_id, [0, 1])

    assert await work.status_of(system, tenant.tenant_id, job_id) == before


@pytest.mark.parametrize(
    ("pages", "fields", "code", "named"),
    [
        ([0, 2], {}, "invalid_state", [2]),
        ([0, 7], {}, "invalid_request", [7]),
        ([0, 1], {"page_credits": 2}, "invalid_request", [0, 1]),
    ],
    ids=["a page that failed", "no such page", "more than the charge"],
)
async def test_one_bad_page_refuses_the_whole_refund(
    system: Database, pages, fields, code, named
) -> None:
    tenant_id, job_id = await made.a_charged_job(system)
    before = await builders.footprint(system, tenant_id)

    refusal = await made.refused(made.refund(system, tenant_id, job_id, pages, **fields), code)

    assert refusal.details["pages"] == named
    assert await builders.footprint(system, tenant_id) == before


async def test_a_refusal_is_not_remembered(system: Database) -> None:
    tenant_id, job_id = await made.a_charged_job(system)
    await made.refused(made.refund(system, tenant_id, job_id, [2], op_key="a"), "invalid_state")

    correction, replayed = await made.refund(system, tenant_id, job_id, [1], op_key="a")

    assert (correction.state, replayed) == ("done", False)


async def test_a_page_named_twice_is_refunded_once(system: Database) -> None:
    tenant_id, job_id = await made.a_charged_job(system)

    correction, _ = await made.refund(system, tenant_id, job_id, [1, 1, 1])

    assert (correction.amount, correction.pages) == (1, [1])


async def test_a_part_of_a_charge_is_refunded_once_and_no_more(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await made.a_finished_job(system, tenant.tenant_id, price=3)

    whole = made.refund(system, tenant.tenant_id, job_id, [0], page_credits=4)
    await made.refused(whole, "invalid_request")
    part, _ = await made.refund(system, tenant.tenant_id, job_id, [0], page_credits=2)
    again = await made.refused(
        made.refund(system, tenant.tenant_id, job_id, [0, 1]), "invalid_state"
    )
    rest, _ = await made.refund(system, tenant.tenant_id, job_id, [1])

    assert again.details["pages"] == [0]
    assert (part.amount, rest.amount) == (2, 3)
    assert (await builders.balance_of(system, tenant.tenant_id)).refunded == 5


async def test_fifty_refunds_of_a_page_at_once_are_one(system: Database) -> None:
    tenant_id, job_id = await made.a_charged_job(system)

    answers = await races.at_once(
        system, tenant_id, lambda pool, _: made.refund(pool, tenant_id, job_id, [0])
    )

    lost = [answer for answer in answers if isinstance(answer, Refusal)]
    assert len(lost) == 49
    assert {(one.code, str(one.details["pages"])) for one in lost} == {("invalid_state", "[0]")}
    assert (await builders.balance_of(system, tenant_id)).refunded == 1


async def test_one_refund_told_fifty_times_at_once_is_one_and_replays(system: Database) -> None:
    tenant_id, job_id = await made.a_charged_job(system)

    answers = await races.at_once(
        system,
        tenant_id,
        lambda pool, _: made.refund(pool, tenant_id, job_id, [0], op_key="ticket-7"),
    )

    told = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert [replayed for _, replayed in told].count(True) == 49
    assert len({one.correction_id for one, _ in told}) == 1
    assert (await builders.balance_of(system, tenant_id)).refunded == 1


async def test_an_op_key_with_another_body_is_a_conflict(system: Database) -> None:
    tenant_id, job_id = await made.a_charged_job(system)
    first, _ = await made.refund(system, tenant_id, job_id, [0], op_key="a")

    for attempt in (
        made.refund(system, tenant_id, job_id, [1], op_key="a"),
        made.refund(system, tenant_id, job_id, [0], op_key="a", reason="another"),
        made.adjust(system, tenant_id, "adjust_in", 1, op_key="a"),
    ):
        refusal = await made.refused(attempt, "idempotency_conflict")
        assert refusal.details["correction_id"] == str(first.correction_id)
    assert (await builders.balance_of(system, tenant_id)).refunded == 1


async def test_the_call_whose_commit_was_in_doubt_is_no_replay(system: Database) -> None:
    tenant = await builders.a_tenant(system)
    wanted = corrections.Adjustment(kind="adjust_in", amount=5, reason="r", op_key="a")
    once = ids.new_id()

    async def call():
        async with system.connection() as connection:
            return await corrections.adjust(
                connection,
                tenant.tenant_id,
                wanted,
                actor=ANN,
                approval_above=10,
                correction_id=once,
            )

    assert await call() == await call()
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 5


async def test_nobody_and_nothing_are_not_found(system: Database) -> None:
    tenant_id, job_id = await made.a_charged_job(system)
    stranger = await builders.a_tenant(system)

    await made.refused(made.refund(system, ids.new_id(), job_id, [0]), "not_found")
    await made.refused(made.refund(system, stranger.tenant_id, job_id, [0]), "not_found")
    await made.refused(made.adjust(system, ids.new_id(), "adjust_in", 5), "not_found")

    assert (await builders.balance_of(system, tenant_id)).refunded == 0
