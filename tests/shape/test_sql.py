"""Every query beside a module is valid for the newest schema, and is used by its module."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from accounting import reconciliation
from migrations import functions
from runtime import database, sql
from runtime.database import Connection
from tests.support.database import DatabaseUrls

ROOT = Path(__file__).resolve().parents[2]
TWINS = sorted(
    file
    for package in ("jobs", "accounting", "gateway", "workers")
    for file in (ROOT / package).rglob("*.sql")
    if file.with_suffix(".py").exists()
)
USED = re.compile(r"\bSQL\.(\w+)")
MADE = re.compile(r"^CREATE OR REPLACE FUNCTION (\w+)", re.MULTILINE)


@pytest_asyncio.fixture(loop_scope="session")
async def owner(database_urls: DatabaseUrls) -> AsyncIterator[Connection]:
    connection = await database.connect(database_urls.owner)
    yield connection
    await connection.close()


@pytest.mark.parametrize("file", TWINS, ids=lambda file: f"{file.parent.name}.{file.stem}")
async def test_every_query_can_be_prepared(owner: Connection, file: Path) -> None:
    for _, query in sql.beside(str(file)).items():  # noqa: PERF102 # Queries is no dict
        shared = {"page_sum": reconciliation.PAGE_SUM} if "page_sum" in query else {}
        await owner.prepare(reconciliation.shadowed(query, shared) if shared else query)


@pytest.mark.parametrize("file", TWINS, ids=lambda file: f"{file.parent.name}.{file.stem}")
def test_a_module_uses_its_queries_and_no_others(file: Path) -> None:
    used = set(USED.findall(file.with_suffix(".py").read_text(encoding="utf-8")))
    queries = {name for name, _ in sql.beside(str(file)).items()}

    assert used in ({"items"}, queries)


def test_every_sql_file_has_a_twin_or_is_applied() -> None:
    files = {
        file
        for package in ("runtime", "jobs", "accounting", "workers", "gateway", "cli")
        for file in (ROOT / package).rglob("*.sql")
    }

    assert files == {*TWINS, *functions.FILES}


async def test_function_bodies_are_valid(owner: Connection) -> None:
    """What the migration puts off until a body first runs: LANGUAGE sql is checked whole."""
    transaction = owner.transaction()
    await transaction.start()
    try:
        await owner.execute("SET LOCAL check_function_bodies = on")
        await owner.execute(functions.text())
    finally:
        await transaction.rollback()


def test_every_function_is_called() -> None:
    callers = "\n".join(file.read_text(encoding="utf-8") for file in TWINS)
    text = functions.text()

    dead = [
        name
        for name in MADE.findall(text)
        if not re.search(rf"\b{name}\(", callers) and len(re.findall(rf"\b{name}\(", text)) == 1
    ]

    assert dead == []


def test_every_function_carries_its_version() -> None:
    assert [name for name in MADE.findall(functions.text()) if not re.search(r"_v\d+$", name)] == []
