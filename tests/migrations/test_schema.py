"""The schema goes up and down, on an empty database and on one with data."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from migrations import functions, schema
from runtime import database, ids, settings
from runtime.database import Database
from runtime.embedded.postgres import OWNER, SYSTEM, EmbeddedPostgres
from tests.support import builders, work
from tests.support.database import administer

REVISIONS = [f"{number:04}" for number in range(1, 11)]


@pytest.fixture
def empty(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    """The name of a database with nothing in it."""
    name = f"migrated_{ids.new_id().hex}"
    administer(postgres_server, f"CREATE DATABASE {name} OWNER {OWNER}")
    yield name
    administer(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


def look(url: str, query: str) -> list:
    async def run() -> list:
        connection = await database.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()

    return asyncio.run(run())


OURS = """
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
    AND c.relkind IN ('r', 'v') AND c.relname <> 'alembic_version'
UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
ORDER BY 1
"""


def test_up_twice_down_and_up_again(postgres_server: EmbeddedPostgres, empty: str) -> None:
    url = postgres_server.url(OWNER, empty)

    schema.upgrade(url)
    made = look(url, OURS)
    schema.upgrade(url)
    assert look(url, OURS) == made
    schema.downgrade(url)
    assert look(url, OURS) == []
    schema.upgrade(url)

    assert look(url, OURS) == made
    assert ("settle_pages_v2",) in made


def test_every_step_goes_down_and_up_with_data(
    postgres_server: EmbeddedPostgres, empty: str
) -> None:
    url = postgres_server.url(OWNER, empty)
    schema.upgrade(url)
    asyncio.run(fill(postgres_server.url(SYSTEM, empty)))

    for before, after in zip(["base", *REVISIONS], REVISIONS, strict=False):
        schema.downgrade(url, before)
        schema.upgrade(url, after)
        assert look(url, "SELECT version_num FROM alembic_version") == [(after,)]
    schema.upgrade(url)


async def fill(url: str) -> None:
    pool = Database(url, role=database.SYSTEM, size=2)
    await pool.open()
    try:
        tenant = await builders.a_tenant(pool, credits=100)
        await builders.a_job(pool, tenant.tenant_id)
        run = await work.claim(pool)
        await work.pages(pool, run)
        await work.settle(pool, run, [work.ok(0)], [work.link(1, excluded="out_of_scope")])
        await work.finish(pool, run)
    finally:
        await pool.close()


def test_functions_are_replaced_only_when_they_have_changed(
    postgres_server: EmbeddedPostgres, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_server.url(OWNER, empty)
    schema.upgrade(url)

    async def apply() -> bool:
        connection = await database.connect(url)
        try:
            return await functions.apply(connection)
        finally:
            await connection.close()

    assert asyncio.run(apply()) is False
    monkeypatch.setattr(functions, "checksum", lambda: "another")
    assert asyncio.run(apply()) is True


def test_processes_that_migrate_at_once_migrate_once(
    postgres_server: EmbeddedPostgres, empty: str
) -> None:
    url = postgres_server.url(OWNER, empty)
    environment = {**settings.inherited_environment(), "PAGETOLL_MIGRATION_URL": url}
    command = [sys.executable, "-m", "migrations", "upgrade"]

    running = [subprocess.Popen(command, env=environment) for _ in range(3)]

    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert look(url, "SELECT version_num FROM alembic_version") == [(schema.head(),)]


def test_the_head_is_the_last_step() -> None:
    assert schema.head() == REVISIONS[-1]
