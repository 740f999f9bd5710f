"""Behind every function stand constraints and triggers, which refuse what no function does."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from accounting import budgets, metering, quotes, reserving
from accounting.budgets import BudgetRequest
from accounting.pricing import Terms
from accounting.reserving import OverBudget
from runtime import clock, database
from runtime.database import Connection, Database
from runtime.errors import Refusal
from tests.support import builders, work
from tests.support.database import DatabaseUrls

ENTRY = """
INSERT INTO transfer (tenant_id, kind, debit, credit, amount, hold_id, op_key)
SELECT tenant_id, {values} FROM hold
"""
TABLES = ["transfer", "hold", "job", "page", "lot", "account", "hold_allocation", "budget_use"]
REFUSED = {
    "a balance below zero": ("account_available_check", "UPDATE account SET available = -1"),
    "a lot below zero": ("lot_check", "UPDATE lot SET remaining = -1"),
    "a lot above its amount": ("lot_check", "UPDATE lot SET remaining = amount + 1"),
    "an exhausted lot with a rest": ("lot_check1", "UPDATE lot SET exhausted = NOT exhausted"),
    "a second lot of one payment": (
        "lot_tenant_id_op_key_key",
        """INSERT INTO lot (tenant_id, lot_id, source, amount, remaining,
        op_key) SELECT tenant_id, gen_random_uuid(), source, amount, remaining, op_key FROM lot""",
    ),
    "a second entry of one move": (
        "transfer_tenant_id_op_key_key",
        ENTRY.format(values="'reserve', 'available', 'held', 1, hold_id, 'reserve:' || hold_id"),
    ),
    "an entry of nothing": (
        "transfer_amount_check",
        ENTRY.format(values="'charge', 'held', 'charged', 0, hold_id, 'x'"),
    ),
    "an entry from the wrong account": (
        "posting_rule",
        ENTRY.format(values="'charge', 'available', 'charged', 1, hold_id, 'x'"),
    ),
    "a charge without its hold": (
        "hold_rule",
        ENTRY.format(values="'charge', 'held', 'charged', 1, NULL, 'x'"),
    ),
    "a charge over the reserve": (
        "never_over_reserve",
        "UPDATE hold SET charged = reserved + 1 WHERE state = 'open'",
    ),
    "a hold closed with a rest": (
        "closed_is_settled",
        "UPDATE hold SET state = 'closed', closed_at = now()",
    ),
    "a hold closed at no time": (
        "closed_is_settled",
        "UPDATE hold SET state = 'closed', released = reserved - charged",
    ),
    "an allocation that gives too much": (
        "hold_allocation_check",
        "UPDATE hold_allocation SET released = reserved + 1",
    ),
    "a second job of one key": (
        "job_idempotency",
        """INSERT INTO job (tenant_id, job_id, key_id, kind, idempotency_key,
        request_hash, request, price_version, prices, max_pages, timeout_seconds, queue_limit_at,
        deadline_at) SELECT tenant_id, gen_random_uuid(), key_id, kind, idempotency_key,
        request_hash, request, price_version, prices, max_pages, timeout_seconds, queue_limit_at,
        deadline_at FROM job""",
    ),
    "a page in no state": (
        "every_admitted_page_has_one_state",
        "UPDATE job SET queued = queued + 1 WHERE finished_at IS NULL",
    ),
    "more pages than were asked for": (
        "never_more_than_asked_for",
        "UPDATE job SET admitted = 11, queued = queued + 9 WHERE finished_at IS NULL",
    ),
    "a final job with open pages": (
        "final_is_final",
        """UPDATE job SET state = 'failed', finished_at = now(),
        completion_reason = 'deadline', lease_owner = NULL WHERE finished_at IS NULL""",
    ),
    "a charged failure": (
        "only_success_is_charged",
        """UPDATE page SET state = 'failed', reason = 'not_found', credits = 1,
        settled_at = now(), transfer_id = (
            SELECT min(t.transfer_id) FROM transfer t WHERE t.tenant_id = page.tenant_id)
        WHERE state = 'queued'""",
    ),
    "a charge without its entry": (
        "a_charge_has_its_transfer",
        """UPDATE page SET state = 'succeeded', outcome = 'page',
        credits = 1, settled_at = now() WHERE state = 'queued'""",
    ),
    "a page twice in a job": (
        "page_url",
        """INSERT INTO page (tenant_id, job_id, page_no, url, url_key, depth,
        source) SELECT tenant_id, job_id, page_no + 5, url, url_key, depth, source FROM page""",
    ),
    "a cap used below zero": ("budget_use_committed_check", "UPDATE budget_use SET committed = -1"),
    "a change of an entry": (
        "UPDATE on transfer is refused",
        "UPDATE transfer SET amount = amount + 1",
    ),
    "a deleted entry": ("DELETE on transfer is refused", "DELETE FROM transfer"),
    "emptied entries": ("TRUNCATE on transfer is refused", "TRUNCATE transfer CASCADE"),
}


async def some_work(system: Database) -> Any:
    """A lot, a cap, and a running job with a charged and a queued page."""
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_budget(system, tenant.tenant_id, cap=500)
    await builders.a_job(system, tenant.tenant_id, max_pages=10, idempotency_key="key")
    run = await work.claim(system)
    await work.pages(system, run)
    await work.settle(system, run, [work.ok(0)], [work.link(1)])
    return tenant.tenant_id


async def write(owner: Connection, statement: str) -> None:
    """Takes back what should have been refused, so that only this test sees it."""
    async with owner.transaction():
        await owner.execute(statement)
        pytest.fail("it was written")


@pytest.mark.parametrize("what", REFUSED)
async def test_nobody_can_write(system: Database, database_urls: DatabaseUrls, what: str) -> None:
    await some_work(system)
    owner = await database.connect(database_urls.owner)
    try:
        # The owner's rights, without row-level security: what is left is the net itself.
        for table in TABLES:
            await owner.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        net, statement = REFUSED[what]
        with pytest.raises(Exception, match=net):
            await write(owner, statement)
    finally:
        await owner.close()


async def test_the_tightest_cap_is_named(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    for period, cap in (("day", 9), ("month", 5), ("total", 7)):
        await builders.a_budget(system, tenant.tenant_id, period=period, cap=cap)

    with pytest.raises(OverBudget) as refused:
        await builders.a_job(app, tenant.tenant_id, max_pages=10)

    assert refused.value.details["budget"]["cap"] == 5


async def test_a_cap_that_is_set_counts_a_submit_of_the_same_moment(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=10_000)
    wanted = BudgetRequest(node="tenant", period="total", cap=100_000)

    async def put() -> None:
        async with app.connection() as connection:
            await budgets.put(connection, tenant.tenant_id, wanted)

    jobs = [builders.a_job(app, tenant.tenant_id, max_pages=10) for _ in range(40)]
    await asyncio.gather(*jobs[:20], put(), *jobs[20:])

    async with system.connection() as connection:
        (budget,) = await budgets.list_all(connection, tenant.tenant_id)
    assert budget.held == 400


async def test_a_cap_knows_its_period(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_budget(system, tenant.tenant_id, cap=10, period="day")
    async with system.transaction() as tx:
        await tx.execute(
            "INSERT INTO budget_use (tenant_id, budget_id, period_start, committed)"
            " SELECT tenant_id, budget_id, date_trunc('day', now(), 'UTC') - $2::interval, 0"
            " FROM budget WHERE tenant_id = $1",
            tenant.tenant_id,
            timedelta(days=1),
        )

    await builders.a_job(app, tenant.tenant_id, max_pages=10)


async def refusal_of(system: Database, call: str, *arguments: object) -> str | None:
    """The code with which a function refuses; what it wrote is taken back."""
    with pytest.raises(Exception, match=r".") as refused:  # one call, taken back
        async with system.transaction() as tx:
            await tx.fetchval(f"SELECT {call}", *arguments)
    return database.sqlstate(refused.value)


async def a_hold(system: Database) -> tuple[UUID, UUID]:
    """A tenant and its queued job of 10 credits, out of lots of 3 and 97."""
    tenant = await builders.a_tenant(system)
    soon = clock.now() + timedelta(days=1)
    await builders.a_grant(system, tenant.tenant_id, 3, expires_at=soon)
    await builders.a_grant(system, tenant.tenant_id, 97)
    return tenant.tenant_id, await builders.a_job(system, tenant.tenant_id, max_pages=10)


async def test_more_than_the_balance_cannot_be_funded(system: Database) -> None:
    tenant_id, job_id = await a_hold(system)

    call = "fund_holds_v1($1, ARRAY[$2::uuid], ARRAY[91], ARRAY['reserve:more'])"

    assert await refusal_of(system, call, tenant_id, job_id) == "PT402"


async def test_more_than_was_taken_cannot_be_released(system: Database) -> None:
    tenant_id, job_id = await a_hold(system)

    call = "release_v1($1, $2, 11, 'release:more')"

    assert await refusal_of(system, call, tenant_id, job_id) == "PT500"


async def test_lots_that_do_not_sum_to_the_balance_fund_nothing(system: Database) -> None:
    tenant_id, job_id = await a_hold(system)

    with pytest.raises(Exception, match="do not sum") as refused:  # noqa: PT012 # taken back
        async with system.transaction() as tx:
            await tx.execute("UPDATE lot SET remaining = 1 WHERE remaining > 1")
            await tx.fetchval(
                "SELECT fund_holds_v1($1, ARRAY[$2::uuid], ARRAY[9], ARRAY['more'])",
                tenant_id,
                job_id,
            )

    assert database.sqlstate(refused.value) == "PT500"


async def test_all_lots_get_back_what_they_gave(system: Database) -> None:
    tenant_id, job_id = await a_hold(system)

    async with system.connection() as connection:
        await metering.cancel(connection, tenant_id, job_id)

    back = (await builders.balance_of(system, tenant_id)).lots
    assert [lot.remaining for lot in back] == [3, 97]


async def test_a_failure_that_names_a_price_costs_nothing(system: Database) -> None:
    await some_work(system)
    async with system.transaction() as tx:
        job = await tx.fetchrow(
            "SELECT tenant_id, job_id, lease_token FROM job ORDER BY created_at DESC LIMIT 1"
        )
        await tx.fetch("SELECT * FROM claim_pages_v1($1, $2, $3, 9, false)", *job)
        ends = [{"page_no": 1, "state": "failed", "reason": "not_found", "credits": 1}]
        told = await tx.fetchval(
            "SELECT answer FROM settle_pages_v2($1, $2, $3, $4, '[]', '{}', 0, false)",
            *job,
            database.as_json(ends),
        )
        charged = await tx.fetchval("SELECT charged FROM hold WHERE hold_id = $1", job["job_id"])

    assert (told, charged) == ("settled", 1)


@pytest.mark.parametrize("change", [{"prices": {"page": 2}}, {"ceiling": 11}])
async def test_a_quote_binds_its_prices_and_its_ceiling(
    app: Database, system: Database, change: dict[str, Any]
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    submission = builders.a_submission(tenant.tenant_id, max_pages=10)
    agreed = Terms(price_version=1, prices={"page": 1}, ceiling=10)
    async with app.transaction(tenant.tenant_id) as tx:
        made = await quotes.make(tx, tenant.tenant_id, submission.request, agreed, resolve=False)
    request = msgspec.structs.replace(submission.request, quote_id=made.quote_id)
    submission = msgspec.structs.replace(submission, request=request)
    other = msgspec.structs.replace(agreed, **change)

    with pytest.raises(Refusal, match="quote"):
        async with app.connection() as connection:
            await reserving.enqueue(connection, submission, other)


async def test_a_job_that_goes_on_is_no_orphan(system: Database) -> None:
    await some_work(system)

    async with system.connection() as connection:
        assert await metering.settle_orphans(connection, limit=100) == []
