"""Old processes go on beside new ones while a step that only adds is applied under them."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from migrations import functions
from runtime import database
from runtime.database import Database
from tests.gateway.conftest import Client, StartGateway
from tests.support import builders, work
from tests.support.database import DatabaseUrls

TABLES = """
SELECT oid::regclass::text FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""
VIEWS = """
SELECT oid::regclass::text AS name, pg_get_viewdef(oid) AS body FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'v'
"""
READ = [
    "/v1/jobs",
    "/v1/jobs/{job}",
    "/v1/jobs/{job}/results?include_content=false",
    "/v1/jobs/{job}/statement",
    "/v1/jobs/{job}/disputes",
    "/v1/credits",
    "/v1/credits/notices",
    "/v1/credits/entries",
    "/v1/credits/head",
    "/v1/usage",
    "/v1/usage/events",
    "/v1/pricing",
    "/v1/budgets",
    "/v1/keys",
]
ROUNDS = 6
"""More than it takes PostgreSQL and the driver to keep a plan of each statement."""


@pytest_asyncio.fixture
async def own(own_database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    pool = Database(own_database_urls.system, role=database.SYSTEM, size=1)
    await pool.open()
    yield pool
    await pool.close()


async def expand(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds a column to every table and view, and replaces every function."""
    owner = await database.connect(url)
    try:
        views = await owner.fetch(VIEWS)
        for row in await owner.fetch(TABLES):
            await owner.execute(f"ALTER TABLE {row[0]} ADD COLUMN added_later integer")
        for row in views:
            await owner.execute(
                f"CREATE OR REPLACE VIEW {row['name']} WITH (security_invoker = true) AS "
                f"SELECT old.*, 1 AS added_later FROM ({row['body'].rstrip(';')}) AS old"
            )
        monkeypatch.setattr(functions, "checksum", lambda: "of the new code")
        assert await functions.apply(owner)
    finally:
        await owner.close()


async def live(client: httpx.AsyncClient, system: Database) -> list[tuple[str, int]]:
    """A job from its submit to its end, controlled on the way, and all that can be read of it."""
    made = await client.post("/v1/crawls", json={"url": "https://example.com/", "max_pages": 3})
    assert made.status_code == 202, made.text
    job_id = made.json()["job_id"]
    told = []
    for control in ("pause", "resume"):
        answer = await client.post(f"/v1/jobs/{job_id}/{control}")
        told.append((control, answer.status_code))
    run = await work.claim(system)
    await work.pages(system, run)
    await work.settle(system, run, [work.ok(0)], [work.link(1)])
    answer = await client.post(f"/v1/jobs/{job_id}/extend", json={"max_pages": 4})
    told.append(("extend", answer.status_code))
    assert await work.finish(system, run) == "finished"
    answer = await client.delete(f"/v1/jobs/{job_id}")
    told.append(("cancel", answer.status_code))
    for path in READ:
        answer = await client.get(path.format(job=job_id))
        told.append((path, answer.status_code))
    return told


@pytest.mark.slow
async def test_what_a_step_adds_disturbs_no_process_that_runs(
    own: Database,
    own_database_urls: DatabaseUrls,
    start_gateway: StartGateway,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenant = await builders.a_tenant(own, credits=1_000)
    options: dict[str, Any] = {
        "database_url": own_database_urls.app,
        "system_database_url": own_database_urls.system,
    }
    caller = client(await builders.a_key(own, tenant.tenant_id), start_gateway(**options))
    before = [await live(caller, own) for _ in range(ROUNDS)]

    await expand(own_database_urls.owner, monkeypatch)
    after = [await live(caller, own) for _ in range(ROUNDS)]

    assert before == [before[0]] * ROUNDS
    assert after == before
    assert {status for _, status in before[0]} <= {200, 409}, before[0]
    assert await work.violations(own) == []
