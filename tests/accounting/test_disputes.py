"""Disputes: open once for each page, decided once, refunded in the same transaction."""

from datetime import UTC, datetime

import pytest

from accounting import corrections, disputes
from accounting.disputes import DisputeFilter
from runtime import ids
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders, races
from tests.support import corrections as made
from tests.support.corrections import ANN, BOB

FETCHED = datetime(2026, 11, 1, 12, tzinfo=UTC)


async def a_charged_job(system: Database):
    return await made.a_charged_job(
        system,
        title="Home",
        content_type="text/html",
        bytes=120,
        content_hash="00ff",
        final_url="https://example.com/end",
        fetched_at=FETCHED,
    )


async def read(pool: Database, tenant_id, dispute_id):
    async with pool.snapshot(tenant_id) as snapshot:
        return await disputes.read(snapshot, tenant_id, dispute_id)


async def test_a_dispute_keeps_what_was_stored_of_its_pages(
    app: Database, system: Database
) -> None:
    tenant_id, job_id = await a_charged_job(system)

    dispute_id = await made.contest(app, tenant_id, job_id, [1])

    dispute = await read(app, tenant_id, dispute_id)
    assert (dispute.state, dispute.decision, dispute.job_id) == ("open", None, job_id)
    assert (dispute.credits_charged, dispute.credits_refunded) == (1, 0)
    (page,) = dispute.pages
    assert (page.index, page.status, page.http_status) == (1, "succeeded", 200)
    assert (page.title, page.content_type, page.bytes) == ("Home", "text/html", 120)
    assert (page.content_hash, page.fetched_at) == ("00ff", FETCHED)
    assert (page.url, page.final_url) == ("https://example.com/1", "https://example.com/end")
    assert page.credits == 1


@pytest.mark.parametrize(
    ("pages", "code", "named"),
    [([0, 2], "invalid_state", [2]), ([0, 9], "invalid_request", [9])],
    ids=["a page that was not charged", "no such page"],
)
async def test_only_charged_pages_can_be_contested(
    app: Database, system: Database, pages, code, named
) -> None:
    tenant_id, job_id = await a_charged_job(system)

    refusal = await made.refused(made.contest(app, tenant_id, job_id, pages), code)

    assert refusal.details["pages"] == named
    assert await made.contest(app, tenant_id, job_id, [0])


async def test_another_tenants_job_is_not_found(app: Database, system: Database) -> None:
    _, job_id = await a_charged_job(system)
    stranger = await builders.a_tenant(system)

    await made.refused(made.contest(app, stranger.tenant_id, job_id, [0]), "not_found")
    await made.refused(made.contest(app, stranger.tenant_id, ids.new_id(), [0]), "not_found")


async def test_a_refunded_page_cannot_be_contested(app: Database, system: Database) -> None:
    tenant_id, job_id = await a_charged_job(system)
    await made.refund(system, tenant_id, job_id, [0])

    await made.refused(made.contest(app, tenant_id, job_id, [0]), "invalid_state")


async def test_fifty_disputes_over_a_page_at_once_are_one(app: Database, system: Database) -> None:
    tenant_id, job_id = await a_charged_job(system)

    answers = await races.at_once(
        app, tenant_id, lambda pool, _: made.contest(pool, tenant_id, job_id, [0])
    )

    lost = [answer for answer in answers if isinstance(answer, Refusal)]
    (won,) = [answer for answer in answers if not isinstance(answer, Refusal)]
    assert {(one.code, one.details["dispute_id"]) for one in lost} == {("invalid_state", str(won))}
    assert len(lost) == 49


async def test_an_accepted_dispute_is_refunded_at_once(app: Database, system: Database) -> None:
    tenant_id, job_id = await a_charged_job(system)
    dispute_id = await made.contest(app, tenant_id, job_id, [0, 1])

    replayed = await made.decide(system, tenant_id, dispute_id, "accepted")

    dispute = await read(app, tenant_id, dispute_id)
    assert (replayed, dispute.state, dispute.credits_refunded) == (False, "accepted", 2)
    assert dispute.decision is not None
    assert (dispute.decision.decided_by, dispute.decision.reason) == (ANN, "seen")
    assert dispute.decision.correction_id is not None
    assert (await builders.balance_of(system, tenant_id)).refunded == 2
    async with system.connection() as connection:
        refund = await corrections.read(connection, tenant_id, dispute.decision.correction_id)
    assert (refund.dispute_id, refund.state, refund.pages) == (dispute_id, "done", [0, 1])


async def test_a_rejected_dispute_moves_nothing_and_its_pages_may_be_contested_again(
    app: Database, system: Database
) -> None:
    tenant_id, job_id = await a_charged_job(system)
    dispute_id = await made.contest(app, tenant_id, job_id, [0])

    await made.decide(system, tenant_id, dispute_id, "rejected")

    dispute = await read(app, tenant_id, dispute_id)
    assert (dispute.state, dispute.credits_refunded) == ("rejected", 0)
    assert (await builders.balance_of(system, tenant_id)).refunded == 0
    assert await made.contest(app, tenant_id, job_id, [0]) != dispute_id


async def test_fifty_decisions_at_once_have_one_winner(app: Database, system: Database) -> None:
    tenant_id, job_id = await a_charged_job(system)
    dispute_id = await made.contest(app, tenant_id, job_id, [0])

    answers = await races.at_once(
        system,
        tenant_id,
        lambda pool, number: made.decide(
            pool, tenant_id, dispute_id, "accepted" if number % 2 else "rejected"
        ),
    )

    state = (await read(app, tenant_id, dispute_id)).state
    lost = [one for one in answers if isinstance(one, Refusal)]
    assert {(one.code, one.details["state"]) for one in lost} == {("invalid_state", state)}
    assert (answers.count(False), answers.count(True), len(lost)) == (1, 24, 25)
    given = 1 if state == "accepted" else 0
    assert (await builders.balance_of(system, tenant_id)).refunded == given


async def test_pages_refunded_meanwhile_are_left_out(app: Database, system: Database) -> None:
    tenant_id, job_id = await a_charged_job(system)
    some = await made.contest(app, tenant_id, job_id, [0, 1])
    await made.refund(system, tenant_id, job_id, [0])

    await made.decide(system, tenant_id, some, "accepted")

    assert (await builders.balance_of(system, tenant_id)).refunded == 2
    dispute = await read(app, tenant_id, some)
    assert (dispute.state, dispute.credits_refunded) == ("accepted", 2)


async def test_a_dispute_with_nothing_left_to_refund_can_be_accepted(
    app: Database, system: Database
) -> None:
    tenant_id, job_id = await a_charged_job(system)
    dispute_id = await made.contest(app, tenant_id, job_id, [0])
    await made.refund(system, tenant_id, job_id, [0])

    await made.decide(system, tenant_id, dispute_id, "accepted")

    dispute = await read(app, tenant_id, dispute_id)
    assert dispute.decision is not None
    assert (dispute.state, dispute.decision.correction_id) == ("accepted", None)
    assert (await builders.balance_of(system, tenant_id)).refunded == 1


async def pending_of(system: Database, tenant_id):
    async with system.connection() as connection:
        found = await corrections.list_after(connection, tenant_id, "pending", after=None, limit=9)
    return found[0]


async def test_a_large_refund_of_a_dispute_waits_for_another_key(
    app: Database, system: Database
) -> None:
    tenant_id, job_id = await a_charged_job(system)
    dispute_id = await made.contest(app, tenant_id, job_id, [0, 1])

    first = await made.decide(system, tenant_id, dispute_id, "accepted", limit=1)
    again = await made.decide(system, tenant_id, dispute_id, "accepted", limit=1)
    asked = await pending_of(system, tenant_id)
    waiting = await read(app, tenant_id, dispute_id)
    await made.refused(made.decide(system, tenant_id, dispute_id, "rejected"), "invalid_state")
    await made.refused(made.approve(system, asked, actor=ANN), "forbidden")
    await made.approve(system, asked, actor=BOB)

    assert (first, again) == (False, True)
    assert (waiting.state, waiting.credits_refunded, asked.amount) == ("open", 0, 2)
    dispute = await read(app, tenant_id, dispute_id)
    assert dispute.decision is not None
    assert (dispute.state, dispute.credits_refunded) == ("accepted", 2)
    assert (dispute.decision.decided_by, dispute.decision.correction_id) == (
        ANN,
        asked.correction_id,
    )


async def test_a_refund_that_was_refused_leaves_the_dispute_open(
    app: Database, system: Database
) -> None:
    tenant_id, job_id = await a_charged_job(system)
    dispute_id = await made.contest(app, tenant_id, job_id, [0, 1])
    await made.decide(system, tenant_id, dispute_id, "accepted", limit=1)
    asked = await pending_of(system, tenant_id)
    async with system.connection() as connection:
        await corrections.refuse(
            connection, tenant_id, asked.correction_id, actor=BOB, reason="look again"
        )

    await made.decide(system, tenant_id, dispute_id, "rejected")

    assert (await read(app, tenant_id, dispute_id)).state == "rejected"


async def test_lists_tell_what_is_open_and_whose(app: Database, system: Database) -> None:
    tenant_id, job_id = await a_charged_job(system)
    other_id, other_job = await a_charged_job(system)
    first = await made.contest(app, tenant_id, job_id, [0])
    second = await made.contest(app, tenant_id, job_id, [1])
    theirs = await made.contest(app, other_id, other_job, [0, 1])
    await made.decide(system, tenant_id, first, "rejected")

    async with system.snapshot() as snapshot:

        async def listed(**wanted):
            found = await disputes.list_after(
                snapshot, DisputeFilter(**wanted), after=None, limit=100
            )
            return [(one.dispute_id, one.state, one.pages) for one in found]

        assert await listed(tenant_id=tenant_id) == [
            (first, "rejected", [0]),
            (second, "open", [1]),
        ]
        assert await listed(tenant_id=tenant_id, state="open") == [(second, "open", [1])]
        assert (theirs, "open", [0, 1]) in await listed(state="open")
    async with app.snapshot(tenant_id) as snapshot:
        seen = await disputes.list_after(snapshot, DisputeFilter(), after=None, limit=100)
    assert [one.dispute_id for one in seen] == [first, second]
