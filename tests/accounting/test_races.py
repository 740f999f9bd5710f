"""Fifty at once: exactly one wins, and the others get the named answer."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from accounting import budgets, lots, metering, pricing, quotes, reserving
from accounting.budgets import BudgetRequest
from accounting.pricing import PriceLine
from jobs import runs
from runtime import clock
from runtime.database import Connection, Database
from runtime.errors import Refusal
from tests.support import builders, work

MANY = 50


async def race(database: Database, call: Callable[[Connection], Awaitable[Any]]) -> Counter[Any]:
    """The answers of so many equal calls at once; a refusal answers with its code."""

    async def one() -> Any:
        try:
            async with database.transaction() as tx:
                return await call(tx)
        except Refusal as refused:
            return refused.code

    return Counter(await asyncio.gather(*(one() for _ in range(MANY))))


async def a_run(app: Database, system: Database, *, links: int = 9, **fields: Any):
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_job(app, tenant.tenant_id, **({"max_pages": 10} | fields))
    run = await work.claim(system)
    await work.settle(system, run, found=[work.link(number) for number in range(links)])
    return tenant.tenant_id, run


async def charged(app: Database, run) -> int:
    job = await work.status_of(app, run.lease.tenant_id, run.lease.job_id)
    return job.usage.credits_charged


async def test_one_of_fifty_bodies_with_one_key_is_taken(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    bodies = iter(range(1, MANY + 1))

    async def submit(connection: Connection) -> str:
        submission = builders.a_submission(
            tenant.tenant_id, max_pages=next(bodies), idempotency_key="one"
        )
        agreed = pricing.terms(submission.request, await pricing.current(connection))
        await reserving.enqueue(connection, submission, agreed)
        return "created"

    assert await race(app, submit) == {"created": 1, "idempotency_conflict": MANY - 1}


async def test_credits_for_one_job_are_one_job(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=10)

    async def submit(connection: Connection) -> str:
        submission = builders.a_submission(tenant.tenant_id, max_pages=10)
        agreed = pricing.terms(submission.request, await pricing.current(connection))
        await reserving.enqueue(connection, submission, agreed)
        return "created"

    assert await race(app, submit) == {"created": 1, "insufficient_credits": MANY - 1}


async def test_a_job_is_claimed_by_one(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_job(app, tenant.tenant_id)

    async def claim(connection: Connection) -> bool:
        return await runs.claim_job(connection, "w", lease_seconds=60) is not None

    assert await race(system, claim) == {True: 1, False: MANY - 1}


async def test_a_plan_for_one_running_job_runs_one(app: Database, system: Database) -> None:
    plan = await builders.a_plan(system, running_jobs=1)
    tenant = await builders.a_tenant(system, credits=1_000, plan=plan.plan_id)
    for _ in range(5):
        await builders.a_job(app, tenant.tenant_id)

    async def claim(connection: Connection) -> bool:
        return await runs.claim_job(connection, "w", lease_seconds=60) is not None

    assert await race(system, claim) == {True: 1, False: MANY - 1}


async def test_a_freed_job_is_taken_over_by_one(app: Database, system: Database) -> None:
    _, run = await a_run(app, system)
    await work.move_time(system, run.lease.job_id, lease_until=5)

    async def free(connection: Connection) -> int:
        return len(await runs.free_leases(connection, limit=10))

    async def claim(connection: Connection) -> int | None:
        taken = await runs.claim_job(connection, "w", lease_seconds=60)
        return None if taken is None else taken.lease.token

    assert await race(system, free) == {1: 1, 0: MANY - 1}
    assert await race(system, claim) == {run.lease.token + 2: 1, None: MANY - 1}


async def test_each_page_is_handed_out_once(app: Database, system: Database) -> None:
    _, run = await a_run(app, system)

    async def claim(connection: Connection) -> int | None:
        claims = await runs.claim_pages(connection, run.lease, limit=1, by_level=False)
        return claims[0].page_no if claims else None

    assert await race(system, claim) == dict.fromkeys(range(10), 1) | {None: MANY - 10}


async def test_equal_flushes_charge_once(app: Database, system: Database) -> None:
    _, run = await a_run(app, system)
    await work.pages(system, run)

    answers = await asyncio.gather(
        *(work.settle(system, run, [work.ok(0), work.failed(1)]) for _ in range(MANY))
    )

    assert Counter(answers) == {"settled": MANY}
    assert await charged(app, run) == 1


async def test_the_last_tranche_is_taken_once(app: Database, system: Database) -> None:
    tenant_id, run = await a_run(app, system, max_pages=200, reservation="rolling", links=0)

    async def top_up(connection: Connection) -> str:
        return await metering.top_up(connection, run.lease, run.prices)

    assert await race(system, top_up) == {"topped_up": 1, "at_ceiling": MANY - 1}
    assert (await builders.balance_of(system, tenant_id)).held == 200


async def test_a_cap_for_one_tranche_is_one_tranche(app: Database, system: Database) -> None:
    tenant_id, run = await a_run(app, system, max_pages=900, reservation="rolling", links=0)
    await builders.a_budget(system, tenant_id, cap=250, period="total")

    async def top_up(connection: Connection) -> str:
        return await metering.top_up(connection, run.lease, run.prices)

    assert await race(system, top_up) == {"topped_up": 1, "over_budget": MANY - 1}


async def test_a_job_is_finished_once(app: Database, system: Database) -> None:
    _, run = await a_run(app, system)

    async def finish(connection: Connection) -> str:
        return await metering.finish(connection, run.lease, "page_limit")

    assert await race(system, finish) == {"finished": 1, "already": MANY - 1}


async def test_a_cancel_told_fifty_times_is_one(app: Database, system: Database) -> None:
    tenant_id, run = await a_run(app, system)

    async def cancel(connection: Connection) -> str:
        return await metering.cancel(connection, tenant_id, run.lease.job_id)

    assert await race(app, cancel) == {"cancelling": MANY}
    await work.move_time(system, run.lease.job_id, lease_until=5)

    async def sweep(connection: Connection) -> int:
        return len(await metering.sweep_overdue(connection, limit=10))

    assert await race(system, sweep) == {1: 1, 0: MANY - 1}
    assert await race(app, cancel) == {"cancelled": MANY}
    assert (await builders.balance_of(system, tenant_id)).available == 1_000


async def test_a_job_is_handed_back_once(app: Database, system: Database) -> None:
    _, run = await a_run(app, system)

    async def hand_back(connection: Connection) -> bool:
        return await runs.hand_back(connection, run.lease)

    assert await race(system, hand_back) == {True: 1, False: MANY - 1}


async def test_an_expired_lot_leaves_once(system: Database) -> None:
    tenant = await builders.a_tenant(system)
    lot = await builders.a_grant(
        system, tenant.tenant_id, 7, expires_at=clock.now() + timedelta(days=1)
    )
    await let_expire(system, lot)

    async def expire(tx: Connection) -> int:
        return await lots.expire_lots(tx, tenant.tenant_id)

    assert await race(system, expire) == {7: 1, 0: MANY - 1}


async def test_a_cap_set_fifty_times_is_one_cap(app: Database, system: Database) -> None:
    tenant_id, _ = await a_run(app, system)
    wanted = BudgetRequest(node="tenant", period="total", cap=10)

    async def put(connection: Connection) -> str:
        return str(await budgets.put(connection, tenant_id, wanted))

    async def remove(tx: Connection) -> str:
        await budgets.remove(tx, tenant_id, budget.budget_id)
        return "removed"

    assert len(await race(system, put)) == 1
    async with system.connection() as connection:
        (budget,) = await budgets.list_all(connection, tenant_id)
    assert budget.held == 10
    assert await race(system, remove) == {"removed": 1, "not_found": MANY - 1}


async def test_an_override_is_dropped_once(system: Database) -> None:
    tenant = await builders.a_tenant(system)
    line = PriceLine(kind="crawl", outcome="page", credits=3)
    async with system.transaction() as tx:
        await pricing.set_override(tx, tenant.tenant_id, line, reason="agreed", actor="clerk")

    async def drop(tx: Connection) -> str:
        await pricing.drop_override(tx, tenant.tenant_id, "crawl", "page")
        return "dropped"

    assert await race(system, drop) == {"dropped": 1, "not_found": MANY - 1}


async def test_a_look_at_a_site_is_taken_on_once(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system)
    request = builders.a_submission(tenant.tenant_id).request
    async with app.transaction(tenant.tenant_id) as tx:
        agreed = pricing.terms(request, await pricing.current(tx))
        await quotes.make(tx, tenant.tenant_id, request, agreed, resolve=True)

    async def take(connection: Connection) -> bool:
        return await quotes.claim_probe(connection) is not None

    assert await race(system, take) == {True: 1, False: MANY - 1}


async def test_fifty_price_books_are_fifty_versions(system: Database) -> None:
    async with system.connection() as connection:
        book = await pricing.current(connection)

    async def publish(tx: Connection) -> int:
        return (await pricing.publish(tx, book.lines)).version

    versions = await race(system, publish)

    assert sorted(versions) == list(range(book.version + 1, book.version + MANY + 1))


async def test_jobs_of_one_expired_lot_can_end_together(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system)
    lot = await builders.a_grant(
        system, tenant.tenant_id, 30, expires_at=clock.now() + timedelta(days=1)
    )
    for _ in range(3):
        await builders.a_job(app, tenant.tenant_id, max_pages=10)
    await let_expire(system, lot)

    await work.end_all(system)

    balance = await builders.balance_of(system, tenant.tenant_id)
    assert (balance.available, balance.held, balance.expired) == (0, 0, 30)


@pytest.mark.parametrize("pair", [("ok", "ok"), ("ok", "failed")])
async def test_a_page_twice_in_one_flush_is_charged_once(
    app: Database, system: Database, pair: tuple[str, str]
) -> None:
    _, run = await a_run(app, system)
    await work.pages(system, run)

    ends = [work.ok(0) if word == "ok" else work.failed(0) for word in pair]
    assert await work.settle(system, run, ends) == "settled"

    assert await charged(app, run) <= 1
    assert await work.violations(system) == []


async def let_expire(system: Database, lot_id: Any) -> None:
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE lot SET expires_at = now() - interval '1 s' WHERE lot_id = $1", lot_id
        )
