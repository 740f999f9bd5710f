"""Row-level security: behind the keyed queries stands a wall between tenants."""

import pytest

from accounting import ledger
from jobs import status
from jobs.status import JobFilter
from runtime import ids
from runtime.database import Database
from tests.support import builders, work

TABLES = (
    "tenant",
    "api_key",
    "account",
    "lot",
    "transfer",
    "hold",
    "hold_allocation",
    "job",
    "page",
)


async def two_tenants(app: Database, system: Database):
    made = []
    for _ in range(2):
        tenant = await builders.a_tenant(system, credits=100)
        await builders.a_key(system, tenant.tenant_id)
        job_id = await builders.a_job(app, tenant.tenant_id)
        made.append((tenant.tenant_id, job_id))
    return made


async def test_without_a_tenant_nothing_is_seen(app: Database, system: Database) -> None:
    await two_tenants(app, system)
    async with app.transaction() as tx:
        seen = {table: await tx.fetchval(f"SELECT count(*) FROM {table}") for table in TABLES}

    assert seen == dict.fromkeys(TABLES, 0)


async def test_a_tenant_sees_itself_alone(app: Database, system: Database) -> None:
    (mine, _), _ = await two_tenants(app, system)
    async with app.transaction(mine) as tx:
        seen = {table: await tx.fetch(f"SELECT tenant_id FROM {table}") for table in TABLES}

    assert {row["tenant_id"] for rows in seen.values() for row in rows} == {mine}
    assert all(seen.values())


async def test_the_tenant_does_not_leak_to_the_next_user_of_a_connection(
    app: Database, system: Database
) -> None:
    (mine, job_id), _ = await two_tenants(app, system)
    await work.status_of(app, mine, job_id)
    for _ in range(8):
        async with app.connection() as connection:
            assert await connection.fetchval("SELECT count(*) FROM job") == 0


async def test_anothers_rows_can_be_neither_changed_nor_made(
    app: Database, system: Database
) -> None:
    (mine, _), (theirs, their_job) = await two_tenants(app, system)

    async with app.transaction(mine) as tx:
        changed = await tx.execute("UPDATE account SET available = 0 WHERE tenant_id = $1", theirs)
    with pytest.raises(Exception, match="row-level security"):
        async with app.transaction(mine) as tx:
            await tx.execute(
                "INSERT INTO excluded_url VALUES ($1, $2, 'k', 'u', 'duplicate', 0)",
                theirs,
                their_job,
            )

    assert changed == "UPDATE 0"


async def test_reads_are_keyed_by_tenant(app: Database, system: Database) -> None:
    (mine, my_job), (theirs, their_job) = await two_tenants(app, system)
    async with app.snapshot(mine) as snapshot:
        found, _ = await status.newest(snapshot, mine, JobFilter(), after=None, limit=10)
        entries = await ledger.entries(snapshot, theirs, ledger.EntryFilter(), after=0, limit=10)

    assert [job.job_id for job in found] == [my_job]
    assert entries == []
    with pytest.raises(status.JobNotFound):
        await work.status_of(app, mine, their_job)
    with pytest.raises(status.JobNotFound):
        await work.status_of(app, mine, ids.new_id())


async def test_the_gateways_role_cannot_give_itself_credits(
    app: Database, system: Database
) -> None:
    (mine, _), _ = await two_tenants(app, system)
    for statement in (
        "DELETE FROM hold",
        "UPDATE tenant SET status = 'active'",
        "INSERT INTO account (tenant_id) VALUES (gen_random_uuid())",
        "UPDATE price SET credits = 0",
        "UPDATE plan SET running_jobs = 9",
    ):
        with pytest.raises(Exception, match="permission denied"):
            async with app.transaction(mine) as tx:
                await tx.execute(statement)


async def test_money_functions_refuse_a_tenant_that_was_not_entered(
    app: Database, system: Database
) -> None:
    (mine, _), (theirs, their_job) = await two_tenants(app, system)

    with pytest.raises(Exception, match="not the one that was entered"):
        async with app.transaction(mine) as tx:
            await tx.execute("SELECT cancel_job_v1($1, $2)", theirs, their_job)

    assert (await work.status_of(app, theirs, their_job)).state == "queued"
