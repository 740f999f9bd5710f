"""Migrated databases of the throw-away server: one a test module, copied from a template."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import msgspec
import pytest
import pytest_asyncio

from migrations import schema
from runtime import database, ids
from runtime.database import Database
from runtime.embedded.postgres import APP, OWNER, SYSTEM, EmbeddedPostgres

TEMPLATE = "pagetoll_template"
POOL_SIZE = 4


class DatabaseUrls(msgspec.Struct, frozen=True, kw_only=True):
    """The same database as the schema's owner, the gateway and the other processes see it."""

    owner: str
    app: str
    system: str


@pytest.fixture(scope="session")
def database_template(postgres_server: EmbeddedPostgres) -> str:
    """The name of a database at the newest revision; connect to copies of it only."""
    administer(postgres_server, f"CREATE DATABASE {TEMPLATE} OWNER {OWNER}")
    schema.upgrade(postgres_server.url(OWNER, TEMPLATE))
    return TEMPLATE


@pytest.fixture(scope="module")
def database_urls(
    postgres_server: EmbeddedPostgres, database_template: str
) -> Iterator[DatabaseUrls]:
    """A migrated database that the tests of one module share."""
    with copied(postgres_server, database_template) as made:
        yield made


@pytest.fixture
def own_database_urls(
    postgres_server: EmbeddedPostgres, database_template: str
) -> Iterator[DatabaseUrls]:
    """A migrated database for one test alone, where nothing else has jobs or leases."""
    with copied(postgres_server, database_template) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def system(database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    """The module's database as worker, watchdog and ledger see it: every tenant."""
    pool = Database(database_urls.system, role=database.SYSTEM, size=POOL_SIZE)
    await pool.open()
    yield pool
    await pool.close()


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def app(database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    """The module's database as a gateway sees it: one tenant a transaction."""
    pool = Database(database_urls.app, role=database.APP, size=POOL_SIZE)
    await pool.open()
    yield pool
    await pool.close()


@contextmanager
def copied(server: EmbeddedPostgres, template: str) -> Iterator[DatabaseUrls]:
    name = f"test_{ids.new_id().hex}"
    administer(server, f"CREATE DATABASE {name} TEMPLATE {template} OWNER {OWNER}")
    yield DatabaseUrls(
        owner=server.url(OWNER, name), app=server.url(APP, name), system=server.url(SYSTEM, name)
    )
    administer(server, f"DROP DATABASE {name} WITH (FORCE)")


def administer(server: EmbeddedPostgres, statement: str) -> None:
    """Runs one statement as the superuser, outside any transaction."""

    async def run() -> None:
        connection = await database.connect(server.url(database="postgres"))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())
