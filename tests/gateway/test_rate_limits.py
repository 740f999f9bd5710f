"""Requests a minute: the buckets of a plan, the headers, Redis gone."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.rate_limits import MICRO, LocalBuckets
from runtime.database import Database
from runtime.embedded.redis import EmbeddedRedis
from tests.gateway.conftest import Client, StartGateway
from tests.support import builders
from tests.support.problems import problem_of

CRAWL = {"url": "https://example.com/", "max_pages": 1}


@pytest.fixture
def own_redis(servers_folder: Path) -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis(servers_folder / "own-redis")
    server.start()
    yield server
    server.stop()


async def test_every_answer_tells_what_is_left_of_its_bucket(
    system: Database, client: Client
) -> None:
    plan = await builders.a_plan(
        system, submits_per_minute=10, status_per_minute=20, reads_per_minute=30
    )
    tenant = await builders.a_tenant(system, credits=100, plan=plan.plan_id)
    mine = client(await builders.a_key(system, tenant.tenant_id))

    submitted = await mine.post("/v1/crawls", json=CRAWL)
    assert submitted.headers["RateLimit-Policy"] == '"submit";q=10;w=60'
    assert submitted.headers["RateLimit"] == '"submit";r=9;t=6'
    status = await mine.get(submitted.headers["Location"])
    assert status.headers["RateLimit-Policy"] == '"status";q=20;w=60'
    assert status.headers["RateLimit"] == '"status";r=19;t=3'
    cancelled = await mine.delete(submitted.headers["Location"])
    assert cancelled.headers["RateLimit"] == '"read";r=29;t=2'
    missing = await mine.get("/v1/jobs?limit=0")
    assert missing.headers["RateLimit"].startswith('"read";r=28')


async def test_a_used_up_bucket_is_429_and_moves_nothing(system: Database, client: Client) -> None:
    plan = await builders.a_plan(system, submits_per_minute=3)
    tenant = await builders.a_tenant(system, credits=100, plan=plan.plan_id)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    answers = [await mine.post("/v1/crawls", json=CRAWL) for _ in range(5)]

    assert Counter(answer.status_code for answer in answers) == {202: 3, 429: 2}
    problem = problem_of(answers[-1], 429, "rate_limited")
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 20
    assert problem["retry_after_seconds"] == int(answers[-1].headers["Retry-After"])
    assert answers[-1].headers["RateLimit"].startswith('"submit";r=0;t=')
    assert (await mine.get("/v1/jobs")).status_code == 200
    assert (await builders.footprint(system, tenant.tenant_id)).available == 97


async def test_two_gateways_share_a_bucket(
    system: Database, client: Client, start_gateway: StartGateway
) -> None:
    other = start_gateway()
    plan = await builders.a_plan(system, submits_per_minute=4)
    tenant = await builders.a_tenant(system, credits=100, plan=plan.plan_id)
    key = await builders.a_key(system, tenant.tenant_id)
    clients = [client(key), client(key, other)] * 3
    answers = [await one.post("/v1/crawls", json=CRAWL) for one in clients]
    assert [answer.status_code for answer in answers] == [202] * 4 + [429] * 2


async def test_without_redis_a_submit_works_and_the_limit_holds(
    system: Database, client: Client, start_gateway: StartGateway, own_redis: EmbeddedRedis
) -> None:
    process = start_gateway(redis_url=own_redis.url)
    plan = await builders.a_plan(system, submits_per_minute=5)
    tenant = await builders.a_tenant(system, credits=100, plan=plan.plan_id)
    mine = client(await builders.a_key(system, tenant.tenant_id), process)
    assert (await mine.get("/readyz")).status_code == 200
    own_redis.stop()

    answers = [await mine.post("/v1/crawls", json=CRAWL) for _ in range(7)]
    assert Counter(answer.status_code for answer in answers) == {202: 5, 429: 2}
    assert answers[0].headers["RateLimit"] == '"submit";r=4;t=12'
    not_ready = problem_of(await mine.get("/readyz"), 503, "backend_unavailable")
    assert not_ready["missing"] == ["redis"]
    assert process.log.count("rate_limits_local") == 1

    own_redis.start()
    assert (await mine.get("/readyz")).status_code == 200


def test_a_local_bucket_gives_its_quota_and_not_one_more() -> None:
    buckets = LocalBuckets()
    interval = 60 * MICRO // 10
    taken = [buckets.take("a", interval=interval, window=10 * interval) for _ in range(12)]
    assert [one.allowed for one in taken] == [True] * 10 + [False] * 2
    assert [one.remaining for one in taken[:10]] == list(range(9, -1, -1))
    assert 0 < taken[-1].wait <= interval
    assert taken[-1].retry_after_seconds == 6
    assert buckets.take("b", interval=interval, window=10 * interval).allowed
