"""Each money move waits for whoever holds its rows, and decides by what that one wrote."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from accounting import budgets, lots, metering, reserving
from accounting.budgets import BudgetRequest
from accounting.lots import Grant
from jobs import runs
from jobs.runs import Run
from runtime.database import Connection, Database
from runtime.errors import Refusal
from tests.support import builders, work
from tests.support.races import waits

pytestmark = pytest.mark.tampers

NEW_TOKEN = "UPDATE job SET lease_token = lease_token + 1 WHERE job_id = $1"
NEW_FENCE = "UPDATE hold SET fence = fence + 1 WHERE hold_id = $1"
CLOSED = """UPDATE hold SET state = 'closed', closed_at = '2026-01-01Z',
    released = reserved - charged WHERE hold_id = $1"""
CANCELLED = """UPDATE job SET state = 'cancelling', cancel_requested = true
    WHERE job_id = $1"""
OVERDUE = "UPDATE job SET deadline_at = now() WHERE job_id = $1"
NO_OWNER = "UPDATE job SET lease_owner = NULL WHERE job_id = $1"
NO_ROOM = "UPDATE hold SET ceiling = reserved WHERE hold_id = $1"
SPENT = """WITH spent AS (UPDATE account SET available = 0
    WHERE tenant_id = (SELECT tenant_id FROM hold WHERE hold_id = $1) RETURNING tenant_id)
    UPDATE lot SET remaining = 0, exhausted = true FROM spent
    WHERE lot.tenant_id = spent.tenant_id"""
GROWN = """WITH account AS (SELECT 1 FROM account WHERE tenant_id = (
        SELECT tenant_id FROM hold WHERE hold_id = $1) FOR NO KEY UPDATE)
    UPDATE hold SET reserved = reserved + 5, ceiling = ceiling + 5
    FROM account WHERE hold_id = $1"""
GIVEN = """WITH account AS (SELECT tenant_id FROM account WHERE tenant_id = (
        SELECT tenant_id FROM hold WHERE hold_id = $1) FOR NO KEY UPDATE)
    INSERT INTO lot (tenant_id, lot_id, source, amount, remaining, op_key)
    SELECT tenant_id, gen_random_uuid(), 'grant', 7, 7, 'one' FROM account"""
DRAWN = "SELECT last_value FROM transfer_transfer_id_seq"


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody writes, what is asked meanwhile, and what must be answered afterwards."""

    name: str
    written: str
    asked: Callable[[Connection, Run], Awaitable[Any]]
    answer: Any


async def settle(connection: Connection, run: Run) -> str:
    ends = [work.ok(0)]
    return await metering.settle_pages(connection, run.lease, run.prices, ends, [], work.Facts())


async def finish(connection: Connection, run: Run) -> str:
    return await metering.finish(connection, run.lease, "page_limit")


async def cancel(connection: Connection, run: Run) -> str:
    return await metering.cancel(connection, run.lease.tenant_id, run.lease.job_id)


async def top_up(connection: Connection, run: Run) -> str:
    return await metering.top_up(connection, run.lease, run.prices)


async def pages(connection: Connection, run: Run) -> int:
    return len(await runs.claim_pages(connection, run.lease, limit=9, by_level=False))


async def hand_back(connection: Connection, run: Run) -> bool:
    return await runs.hand_back(connection, run.lease)


async def reserve(connection: Connection, run: Run) -> str:
    submission = builders.a_submission(run.lease.tenant_id, max_pages=10)
    agreed = builders.pricing.terms(submission.request, await builders.pricing.current(connection))
    try:
        await reserving.enqueue(connection, submission, agreed)
    except Refusal as refused:
        return refused.code
    return "created"


async def grant(connection: Connection, run: Run) -> bool:
    wanted = Grant(amount=7, source="grant", op_key="one")
    _, replayed = await lots.grant(connection, run.lease.tenant_id, wanted)
    return replayed


async def put_budget(connection: Connection, run: Run) -> int:
    wanted = BudgetRequest(node="tenant", period="total", cap=1_000)
    await budgets.put(connection, run.lease.tenant_id, wanted)
    (made,) = await budgets.list_all(connection, run.lease.tenant_id)
    return made.held


SCENES = [
    Scene(name="settle, new token", written=NEW_TOKEN, asked=settle, answer="stale"),
    Scene(name="settle, new fence", written=NEW_FENCE, asked=settle, answer="stale"),
    Scene(name="settle, closed hold", written=CLOSED, asked=settle, answer="stale"),
    Scene(name="finish, new token", written=NEW_TOKEN, asked=finish, answer="stale"),
    Scene(name="finish, closed hold", written=CLOSED, asked=finish, answer="finished"),
    Scene(name="cancel, no run any more", written=NO_OWNER, asked=cancel, answer="cancelled"),
    Scene(name="top up, new token", written=NEW_TOKEN, asked=top_up, answer="stale"),
    Scene(name="top up, at the ceiling", written=NO_ROOM, asked=top_up, answer="at_ceiling"),
    Scene(name="top up, credits spent", written=SPENT, asked=top_up, answer="insufficient"),
    Scene(
        name="reserve, credits spent", written=SPENT, asked=reserve, answer="insufficient_credits"
    ),
    Scene(name="grant, same payment", written=GIVEN, asked=grant, answer=True),
    Scene(name="pages, new token", written=NEW_TOKEN, asked=pages, answer=0),
    Scene(name="pages, no time left", written=OVERDUE, asked=pages, answer=0),
    Scene(name="pages, cancelled", written=CANCELLED, asked=pages, answer=0),
    Scene(name="hand back, new token", written=NEW_TOKEN, asked=hand_back, answer=False),
    Scene(name="cap, grown hold", written=GROWN, asked=put_budget, answer=105),
]


async def a_run(system: Database) -> Run:
    """A rolling job of 900 pages with one of three pages in flight, and 1,000 credits."""
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_job(system, tenant.tenant_id, max_pages=900, reservation="rolling")
    run = await work.claim(system)
    while run.lease.tenant_id != tenant.tenant_id:
        run = await work.claim(system)
    await work.settle(system, run, [], [work.link(1), work.link(2)])
    await work.pages(system, run, 1)
    return run


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
async def test_a_move_decides_by_what_it_waited_for(system: Database, scene: Scene) -> None:
    run = await a_run(system)

    async def ask() -> Any:
        async with system.connection() as connection:
            return await scene.asked(connection, run)

    async with system.transaction() as gate, system.connection() as watch:
        await gate.execute(scene.written, run.lease.job_id)
        drawn = await watch.fetchval(DRAWN)
        asked = asyncio.ensure_future(ask())
        await waits(watch, asked)
        # One who draws an entry's number before a lock is unknown to the feed, which skips it.
        assert await watch.fetchval(DRAWN) == drawn
    answered = await asked

    assert answered == scene.answer
    if scene.written == CLOSED:
        async with system.connection() as connection:
            closed_at = await connection.fetchval(
                "SELECT closed_at FROM hold WHERE hold_id = $1", run.lease.job_id
            )
        assert closed_at.isoformat() == "2026-01-01T00:00:00+00:00"


async def test_a_release_takes_the_account_before_its_lots(system: Database) -> None:
    run = await a_run(system)

    async with system.transaction() as gate, system.connection() as watch:
        await gate.execute(
            "SELECT 1 FROM account WHERE tenant_id = $1 FOR NO KEY UPDATE", run.lease.tenant_id
        )
        ending = asyncio.ensure_future(work.finish(system, run))
        await waits(watch, ending)
        # Refused at once where the release was in the lots already.
        await gate.execute(
            "SELECT 1 FROM lot WHERE tenant_id = $1 FOR NO KEY UPDATE NOWAIT", run.lease.tenant_id
        )

    assert await ending == "finished"


async def test_a_frozen_tenant_reserves_nothing(system: Database) -> None:
    run = await a_run(system)
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE tenant SET frozen_at = now(), frozen_by = 'a test' WHERE tenant_id = $1",
            run.lease.tenant_id,
        )

        assert await reserve(connection, run) == "tenant_suspended"
