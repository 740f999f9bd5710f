"""Rolling reservations: a tranche at a time, to the ceiling, and refused without a trace."""

import asyncio

from accounting import metering, pricing
from runtime.database import Database
from tests.support import builders, work


async def a_run(app: Database, system: Database, *, credits: int, **fields):
    tenant = await builders.a_tenant(system, credits=credits)
    await builders.a_job(
        app, tenant.tenant_id, **({"max_pages": 250, "reservation": "rolling"} | fields)
    )
    return tenant, await work.claim(system)


async def top_up(system: Database, run) -> str:
    async with system.connection() as connection:
        return await metering.top_up(connection, run.lease, run.prices)


async def usage_of(app: Database, run):
    job = await work.status_of(app, run.lease.tenant_id, run.lease.job_id)
    return job.usage


async def test_a_rolling_job_reserves_a_tranche(app: Database, system: Database) -> None:
    tenant, run = await a_run(app, system, credits=1_000)

    assert (await usage_of(app, run)).credits_reserved == pricing.TRANCHE_PAGES == 100
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 900


async def test_a_small_rolling_job_reserves_only_what_it_can_cost(
    app: Database, system: Database
) -> None:
    _, run = await a_run(app, system, credits=1_000, max_pages=7)

    assert (await usage_of(app, run)).credits_reserved == 7


async def test_it_grows_to_its_ceiling_and_no_further(app: Database, system: Database) -> None:
    tenant, run = await a_run(app, system, credits=1_000)

    answers = [await top_up(system, run) for _ in range(4)]

    assert answers == ["topped_up", "topped_up", "at_ceiling", "at_ceiling"]
    assert (await usage_of(app, run)).credits_reserved == 250
    assert (await builders.balance_of(system, tenant.tenant_id)).held == 250


async def test_a_failed_page_gives_nothing_back_before_the_end(
    app: Database, system: Database
) -> None:
    _, run = await a_run(app, system, credits=1_000)
    await work.pages(system, run)

    await work.settle(system, run, [work.failed(0)])

    assert (await usage_of(app, run)).credits_released == 0


async def test_a_refused_top_up_moves_nothing_and_can_be_asked_for_again(
    app: Database, system: Database
) -> None:
    tenant, run = await a_run(app, system, credits=150)

    assert await top_up(system, run) == "insufficient"
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 50
    await builders.a_grant(system, tenant.tenant_id, 50)
    assert await top_up(system, run) == "topped_up"
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 0


async def test_a_top_up_counts_in_its_budgets(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_budget(system, tenant.tenant_id, cap=220)
    await builders.a_job(app, tenant.tenant_id, max_pages=250, reservation="rolling")
    run = await work.claim(system)

    assert [await top_up(system, run) for _ in range(2)] == ["topped_up", "over_budget"]


async def test_top_ups_of_many_jobs_never_overdraw(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=650)
    for _ in range(5):
        await builders.a_job(app, tenant.tenant_id, max_pages=500, reservation="rolling")
    runs = [await work.claim(system) for _ in range(5)]

    answers = await asyncio.gather(*(top_up(system, run) for run in runs for _ in range(3)))

    assert answers.count("topped_up") == 1
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 50


async def test_an_old_run_cannot_top_up(app: Database, system: Database) -> None:
    _, run = await a_run(app, system, credits=1_000)
    await work.finish(system, run, "budget")

    assert await top_up(system, run) == "stale"
