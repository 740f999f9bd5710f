"""What a caller is told when something breaks here, and what is only in the log."""

import asyncio

from runtime import database
from tests.gateway.conftest import Client, StartGateway
from tests.support import builders
from tests.support.database import DatabaseUrls
from tests.support.problems import problem_of


async def test_a_fault_of_ours_is_500_and_its_traceback_stays_in_the_log(
    own_database_urls: DatabaseUrls, start_gateway: StartGateway, client: Client
) -> None:
    pool = database.Database(own_database_urls.system, role=database.SYSTEM, size=1)
    await pool.open()
    tenant = await builders.a_tenant(pool)
    key = await builders.a_key(pool, tenant.tenant_id)
    await pool.close()
    process = start_gateway(
        database_url=own_database_urls.app, system_database_url=own_database_urls.system
    )
    owner = await database.connect(own_database_urls.owner)
    await owner.execute("DROP VIEW job_status CASCADE")
    await owner.close()

    mine = client(key, process)
    answer = await mine.get("/v1/jobs", headers={"X-Request-Id": "broken-1"})
    problem = problem_of(answer, 500, "internal_error")
    assert problem["request_id"] == "broken-1"
    assert "job_status" not in answer.text
    (line,) = process.logged('"request_failed"')
    assert "broken-1" in line
    assert "Traceback" in line
    assert "job_status" in line
    assert key not in process.log


async def test_a_lost_database_is_503_and_the_gateway_recovers(
    own_database_urls: DatabaseUrls, start_gateway: StartGateway, client: Client
) -> None:
    pool = database.Database(own_database_urls.system, role=database.SYSTEM, size=1)
    await pool.open()
    tenant = await builders.a_tenant(pool, credits=10)
    mine_key = await builders.a_key(pool, tenant.tenant_id)
    mine = client(
        mine_key,
        start_gateway(
            database_url=own_database_urls.app, system_database_url=own_database_urls.system
        ),
    )
    crawl = {"url": "https://example.com/", "max_pages": 1}
    assert (await mine.post("/v1/crawls", json=crawl)).status_code == 202
    owner = await database.connect(own_database_urls.owner)
    end_sessions = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND pg_has_role(current_user, usesysid, 'USAGE')"
    )
    answers = await asyncio.gather(
        *(
            mine.post("/v1/crawls", json=crawl, headers={"Idempotency-Key": "one"})
            for _ in range(20)
        ),
        owner.fetch(end_sessions),
    )
    await owner.close()
    assert answers[20], "no session was ended"
    for answer in answers[:20]:
        assert answer.status_code in {202, 503}
    again = await mine.post("/v1/crawls", json=crawl, headers={"Idempotency-Key": "one"})
    assert again.status_code == 202
    await pool.close()
    fresh = database.Database(own_database_urls.system, role=database.SYSTEM, size=1)
    await fresh.open()
    left = await builders.footprint(fresh, tenant.tenant_id)
    await fresh.close()
    assert (left.jobs, left.holds, left.available) == (2, 2, 8)


REFUSE = """
CREATE FUNCTION refuse_v0() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON job FOR EACH ROW EXECUTE FUNCTION refuse_v0();
"""


async def test_a_database_without_room_is_503_and_takes_nothing(
    own_database_urls: DatabaseUrls, start_gateway: StartGateway, client: Client
) -> None:
    pool = database.Database(own_database_urls.system, role=database.SYSTEM, size=1)
    await pool.open()
    tenant = await builders.a_tenant(pool, credits=10)
    key = await builders.a_key(pool, tenant.tenant_id)
    gateway = start_gateway(
        database_url=own_database_urls.app, system_database_url=own_database_urls.system
    )
    owner = await database.connect(own_database_urls.owner)
    await owner.execute(REFUSE)
    crawl = {"url": "https://example.com/", "max_pages": 1}

    refused = await client(key, gateway).post("/v1/crawls", json=crawl)
    read = await client(key, gateway).get("/v1/credits")
    await owner.execute("DROP TRIGGER refuse ON job")
    await owner.close()
    taken = await client(key, gateway).post("/v1/crawls", json=crawl)

    problem_of(refused, 503, "backend_unavailable")
    assert refused.headers["retry-after"]
    assert (read.json()["available"], taken.status_code) == (10, 202)
    await pool.close()
