"""Each invariant notices its own kind of damage, and names the row."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest
import pytest_asyncio

from accounting import proofs, reconciliation
from runtime import database
from runtime.database import Database
from runtime.embedded.postgres import EmbeddedPostgres
from tests.support import builders, corrections, sealing, work
from tests.support.database import DatabaseUrls

DAMAGE = {
    "available_is_the_ledgers": "UPDATE account SET available = available + 1",
    "available_is_in_lots": "UPDATE lot SET remaining = remaining - 1 WHERE remaining > 1",
    "held_is_in_open_holds": "UPDATE hold SET reserved = reserved + 1 WHERE state = 'open'",
    "holds_match_their_entries": "UPDATE transfer SET amount = amount + 1 WHERE kind = 'charge'",
    "holds_match_their_pages": "UPDATE page SET credits = credits + 1 WHERE credits > 0",
    "charges_match_their_pages": "UPDATE page SET credits = 0, transfer_id = NULL",
    "successes_cost_their_price": """UPDATE job SET prices = '{"page": 2}'""",
    "counters_match_their_pages": "UPDATE job SET failed = failed + 1, admitted = admitted + 1",
    "final_jobs_are_settled": "UPDATE hold SET state = 'open', closed_at = NULL",
    "settled_jobs_are_final": """UPDATE job SET finished_at = NULL, completion_reason = NULL,
        expires_at = NULL, state = 'running'""",
    "every_job_has_its_hold": "DELETE FROM hold_allocation; DELETE FROM hold",
    "allocations_match_their_holds": "UPDATE hold_allocation SET reserved = reserved + 1",
    "no_balance_is_negative": "UPDATE transfer SET amount = 5000 WHERE kind = 'reserve'",
    "budgets_match_their_holds": "UPDATE budget_use SET committed = committed + 1",
    "no_job_costs_more_than_its_ceiling": "UPDATE hold SET ceiling = charged - 1",
    "refunds_are_within_their_charges": "UPDATE page_refund SET amount = amount + 1",
    "refunds_match_their_pages": "DELETE FROM page_refund",
    "corrections_match_their_entries": "DELETE FROM correction WHERE kind = 'adjust_out'",
    "accepted_disputes_are_refunded": "DELETE FROM page_refund",
    "pages_have_one_open_dispute": """DELETE FROM dispute_decision; INSERT INTO dispute
        SELECT tenant_id, gen_random_uuid(), job_id, reason, opened_by FROM dispute;
        INSERT INTO dispute_page SELECT d.tenant_id, d.dispute_id, p.job_id, p.page_no, p.evidence
        FROM dispute d CROSS JOIN dispute_page p WHERE d.dispute_id <> p.dispute_id""",
    "fences_never_go_back": """UPDATE page SET fence = 9 WHERE transfer_id =
        (SELECT min(transfer_id) FROM page)""",
    "closed_periods_equal_their_entries": """INSERT INTO period_close (tenant_id, period, ends_at,
        opening, opening_held, closing, closing_held, totals, last_transfer_id)
        SELECT tenant_id, '2020-01-01', '2020-02-01Z', 5, 0, 5, 0, '[]', 0 FROM account""",
    "the_feed_has_no_gaps": """INSERT INTO usage_event (tenant_id, seq, transfer_id)
        SELECT tenant_id, 2, min(transfer_id) FROM transfer GROUP BY tenant_id""",
    "the_feed_has_every_entry": """UPDATE feed_position
        SET numbered_through = 1000000, next_through = 1000000""",
}
DAMAGE |= {
    "seals_are_chained": "DELETE FROM seal WHERE seal_no = 1",
    "seals_match_their_entries": """UPDATE transfer SET meta = '{"edited": true}'""",
    "entries_are_sealed": """UPDATE seal_position SET sealed_through = 1000000;
        DELETE FROM seal_entry WHERE transfer_id = (SELECT max(transfer_id) FROM seal_entry)""",
}
PROVED_BY_CONSTRUCTION = {"accounts_sum_to_zero"}
"""One row is one debit and one credit: no damage to rows can break it, only to the query."""


@pytest_asyncio.fixture
async def own(own_database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    pool = Database(own_database_urls.system, role=database.SYSTEM, size=4)
    await pool.open()
    yield pool
    await pool.close()


async def some_history(own: Database) -> None:
    """A finished job with two flushes, and one that runs."""
    tenant = await builders.a_tenant(own, credits=1_000)
    await builders.a_budget(own, tenant.tenant_id, cap=500)
    for _ in range(2):
        await builders.a_job(own, tenant.tenant_id, max_pages=10)
    for is_last in (False, True):
        run = await work.claim(own)
        await work.settle(own, run, found=[work.link(number) for number in range(3)])
        await work.pages(own, run)
        await work.settle(own, run, [work.ok(0), work.failed(1)])
        await work.settle(own, run, [work.ok(2)])
        if not is_last:
            await work.finish(own, run)
            await corrections.some_corrections(own, tenant.tenant_id, run.lease.job_id)
        await sealing.seal_all(own)


@pytest.mark.tampers
@pytest.mark.parametrize("invariant", DAMAGE)
async def test_damage_is_seen_and_named(
    own: Database, own_database_urls: DatabaseUrls, postgres_server: EmbeddedPostgres, invariant
) -> None:
    await some_history(own)
    assert await work.violations(own) == []

    await damage(own_database_urls, postgres_server, DAMAGE[invariant])

    broken = {verdict.invariant: verdict for verdict in await work.violations(own)}
    assert invariant in broken
    assert broken[invariant].first is not None
    assert broken[invariant].first.detail


@pytest.mark.tampers
@pytest.mark.parametrize("invariant", sorted(DAMAGE.keys() - reconciliation.OF_HISTORY))
async def test_damage_of_what_moved_is_seen_without_looking_at_the_rest(
    own: Database, own_database_urls: DatabaseUrls, postgres_server: EmbeddedPostgres, invariant
) -> None:
    await some_history(own)
    whole = await proofs.run(own, "recent", asked_by="test")
    assert whole.run.verdicts == []

    await damage(own_database_urls, postgres_server, DAMAGE[invariant])

    proof = await proofs.run(own, "recent", asked_by="test")
    assert invariant in {verdict.invariant for verdict in proof.run.verdicts}
    full = await proofs.run(own, "full", asked_by="test")
    found = {verdict.invariant: verdict for verdict in full.run.verdicts}
    assert found[invariant].tenants == [await own_tenant(own)]


async def own_tenant(own: Database) -> UUID:
    async with own.connection() as connection:
        tenant_id: UUID = await connection.fetchval("SELECT tenant_id FROM tenant")
    return tenant_id


def test_every_invariant_has_its_damage() -> None:
    names = {name for name, _ in reconciliation.SQL.items()}

    assert names == DAMAGE.keys() | PROVED_BY_CONSTRUCTION


async def damage(urls: DatabaseUrls, server: EmbeddedPostgres, statements: str) -> None:
    """Only a superuser with triggers and checks out of the way can do such a thing."""
    name = urls.system.split("@/")[1].split("?")[0]
    connection = await database.connect(server.url(database=name))
    try:
        await connection.execute("SET session_replication_role = replica")
        checks = await connection.fetch(
            "SELECT conrelid::regclass::text AS t, conname FROM pg_constraint "
            "WHERE contype = 'c' AND connamespace = 'public'::regnamespace"
        )
        for row in checks:
            await connection.execute(f"ALTER TABLE {row['t']} DROP CONSTRAINT {row['conname']}")
        await connection.execute(statements)
    finally:
        await connection.close()


@pytest.mark.tampers
async def test_a_page_that_names_no_entry_is_seen(
    own: Database, own_database_urls: DatabaseUrls, postgres_server: EmbeddedPostgres
) -> None:
    await some_history(own)

    await damage(
        own_database_urls, postgres_server, "UPDATE page SET transfer_id = 999999 WHERE credits > 0"
    )

    found = {verdict.invariant: verdict for verdict in await work.violations(own)}
    assert found["charges_match_their_pages"].first is not None


@pytest.mark.tampers
async def test_a_page_that_names_another_holds_entry_is_seen(
    own: Database, own_database_urls: DatabaseUrls, postgres_server: EmbeddedPostgres
) -> None:
    await some_history(own)

    await damage(
        own_database_urls,
        postgres_server,
        """UPDATE page p SET transfer_id = t.transfer_id FROM transfer t JOIN page o
           USING (tenant_id, transfer_id) WHERE o.job_id <> p.job_id AND o.page_no = p.page_no
           AND p.credits > 0""",
    )

    assert "charges_match_their_pages" in {
        verdict.invariant for verdict in await work.violations(own)
    }


@pytest.mark.tampers
async def test_a_page_of_no_job_is_seen(
    own: Database, own_database_urls: DatabaseUrls, postgres_server: EmbeddedPostgres
) -> None:
    await some_history(own)

    await damage(
        own_database_urls, postgres_server, "UPDATE page SET job_id = gen_random_uuid(), fence = 1"
    )

    found = {verdict.invariant: verdict for verdict in await work.violations(own)}
    # the jobs that lost their pages, and as many groups of pages that no job has
    assert found["counters_match_their_pages"].violations == 2 + 8
