"""What corrections and disputes wrote stays, and no tenant sees another's."""

import pytest

from accounting import disputes
from runtime import database
from runtime.database import Database
from runtime.embedded.postgres import EmbeddedPostgres
from tests.support import builders
from tests.support import corrections as made
from tests.support.database import DatabaseUrls

TABLES = ("dispute", "dispute_page", "dispute_decision", "page_refund", "correction")


async def some_of_each(app: Database, system: Database) -> None:
    tenant_id, job_id = await made.a_charged_job(system)
    dispute_id = await made.contest(app, tenant_id, job_id, [0])
    await made.decide(system, tenant_id, dispute_id, "accepted")


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", ["DELETE FROM {}", "TRUNCATE {} CASCADE"])
async def test_no_role_of_the_processes_takes_rows_out(
    app: Database, system: Database, table: str, statement: str
) -> None:
    await some_of_each(app, system)
    for pool in (app, system):
        with pytest.raises(Exception, match="permission denied"):
            async with pool.transaction() as tx:
                await tx.execute(statement.format(table))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "statement", ["DELETE FROM {}", "TRUNCATE {} CASCADE", "UPDATE {} SET reason = reason || '!'"]
)
async def test_not_even_a_superuser_changes_what_was_written(
    app: Database,
    system: Database,
    database_urls: DatabaseUrls,
    postgres_server: EmbeddedPostgres,
    table: str,
    statement: str,
) -> None:
    await some_of_each(app, system)
    name = database_urls.system.split("@/")[1].split("?")[0]
    superuser = await database.connect(postgres_server.url(database=name))
    changed = statement.format(table)
    if table == "dispute_page":
        changed = changed.replace("reason = reason || '!'", "evidence = '{}'")
    try:
        with pytest.raises(Exception, match="is refused"):
            await superuser.execute(changed)
    finally:
        await superuser.close()


@pytest.mark.parametrize("change", ["decided_at = now()", "state = 'pending', decided_at = NULL"])
async def test_a_decided_correction_is_decided_for_ever(
    app: Database, system: Database, change: str
) -> None:
    await some_of_each(app, system)

    with pytest.raises(Exception, match=r"of correction .* is refused"):
        async with system.transaction() as tx:
            await tx.execute(f"UPDATE correction SET {change} WHERE state = 'done'")


async def test_one_tenant_never_sees_anothers_disputes(app: Database, system: Database) -> None:
    tenant_id, job_id = await made.a_charged_job(system)
    dispute_id = await made.contest(app, tenant_id, job_id, [0])
    stranger = await builders.a_tenant(system)

    async with app.transaction(stranger.tenant_id) as tx:
        for table in ("dispute", "dispute_page", "dispute_decision", "page_refund"):
            assert await tx.fetchval(f"SELECT count(*) FROM {table}") == 0
        with pytest.raises(disputes.DisputeNotFound):
            await disputes.read(tx, tenant_id, dispute_id)
