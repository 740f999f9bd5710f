"""Submitting crawls: the 202, its money, and one job for one Idempotency-Key."""

import asyncio
from collections import Counter
from typing import Any

import httpx

from runtime.database import Database
from tests.gateway.conftest import Client
from tests.support import builders
from tests.support.problems import problem_of

CRAWL = {"url": "https://example.com/", "max_pages": 5}


async def a_caller(
    system: Database, client: Client, **fields: Any
) -> tuple[Any, httpx.AsyncClient]:
    tenant = await builders.a_tenant(system, **fields)
    return tenant.tenant_id, client(await builders.a_key(system, tenant.tenant_id))


async def test_a_submit_reserves_the_most_it_can_cost(system: Database, client: Client) -> None:
    tenant_id, mine = await a_caller(system, client, credits=100)
    answer = await mine.post("/v1/crawls", json={**CRAWL, "tags": ["a"], "metadata": {"b": "c"}})

    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["Location"] == f"/v1/jobs/{job['job_id']}"
    assert answer.headers["X-Credits-Reserved"] == "5"
    assert answer.headers["X-Credits-Charged"] == "0"
    assert 1 <= int(answer.headers["Retry-After"]) <= 300
    assert "Idempotent-Replayed" not in answer.headers
    assert (job["state"], job["kind"], job["tags"], job["metadata"]) == (
        "queued",
        "crawl",
        ["a"],
        {"b": "c"},
    )
    assert job["usage"]["credits_reserved"] == 5
    assert job["usage"]["settlement_pending"] is True
    assert "expires_at" not in job
    assert job["created_at"].endswith("Z")
    balance = await builders.balance_of(system, tenant_id)
    assert (balance.available, balance.held) == (95, 5)


async def test_a_customers_own_limit_is_what_is_reserved(system: Database, client: Client) -> None:
    _, mine = await a_caller(system, client, credits=100)
    answer = await mine.post("/v1/crawls", json={**CRAWL, "max_credits": 3})
    assert answer.headers["X-Credits-Reserved"] == "3"


async def test_a_submit_beyond_the_balance_tells_what_is_missing(
    system: Database, client: Client
) -> None:
    tenant_id, mine = await a_caller(system, client, credits=4)
    before = await builders.footprint(system, tenant_id)
    problem = problem_of(await mine.post("/v1/crawls", json=CRAWL), 402, "insufficient_credits")
    assert (problem["required"], problem["available"]) == (5, 4)
    assert problem["max_affordable_pages"] == 4
    assert await builders.footprint(system, tenant_id) == before


async def test_the_same_key_and_body_replay_the_job(system: Database, client: Client) -> None:
    tenant_id, mine = await a_caller(system, client, credits=100)
    headers = {"Idempotency-Key": "order-1"}
    first = await mine.post("/v1/crawls", json=CRAWL, headers=headers)
    # the same after defaults, written another way
    again = await mine.post("/v1/crawls", json={"max_depth": None, **CRAWL}, headers=headers)

    assert again.status_code == 202
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["X-Credits-Reserved"] == "0"
    assert again.json()["job_id"] == first.json()["job_id"]
    assert (await builders.footprint(system, tenant_id)).jobs == 1


async def test_the_same_key_with_another_body_is_a_conflict(
    system: Database, client: Client
) -> None:
    tenant_id, mine = await a_caller(system, client, credits=100)
    headers = {"Idempotency-Key": "order-1"}
    first = await mine.post("/v1/crawls", json=CRAWL, headers=headers)
    before = await builders.footprint(system, tenant_id)
    other = await mine.post("/v1/crawls", json={**CRAWL, "max_pages": 6}, headers=headers)
    problem = problem_of(other, 409, "idempotency_conflict")
    assert problem["job_id"] == first.json()["job_id"]
    assert await builders.footprint(system, tenant_id) == before


async def test_another_tenant_has_its_own_keys(system: Database, client: Client) -> None:
    _, mine = await a_caller(system, client, credits=100)
    _, other = await a_caller(system, client, credits=100)
    headers = {"Idempotency-Key": "order-1"}
    answers = [await who.post("/v1/crawls", json=CRAWL, headers=headers) for who in (mine, other)]
    assert answers[0].json()["job_id"] != answers[1].json()["job_id"]


async def test_a_malformed_idempotency_key_is_refused(system: Database, client: Client) -> None:
    tenant_id, mine = await a_caller(system, client, credits=100)
    for key in ("", "two words", "x" * 256, "ü".encode()):
        answer = await mine.post("/v1/crawls", json=CRAWL, headers={"Idempotency-Key": key})
        problem = problem_of(answer, 400, "invalid_request")
        assert problem["errors"][0]["path"] == "Idempotency-Key"
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    answer = await mine.post("/v1/crawls", json=CRAWL, headers=twice)
    problem_of(answer, 400, "invalid_request")
    assert (await builders.footprint(system, tenant_id)).jobs == 0


async def test_fifty_identical_submits_at_once_make_one_job(
    system: Database, client: Client
) -> None:
    tenant_id, mine = await a_caller(system, client, credits=1_000)
    answers = await asyncio.gather(
        *(
            mine.post("/v1/crawls", json=CRAWL, headers={"Idempotency-Key": "once"})
            for _ in range(50)
        )
    )
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    assert sum(int(answer.headers["X-Credits-Reserved"]) for answer in answers) == 5
    left = await builders.footprint(system, tenant_id)
    assert (left.jobs, left.holds, left.available) == (1, 1, 995)


async def test_fifty_submits_at_once_never_overdraw_the_balance(
    system: Database, client: Client
) -> None:
    tenant_id, mine = await a_caller(system, client, credits=100)
    answers = await asyncio.gather(*(mine.post("/v1/crawls", json=CRAWL) for _ in range(50)))
    assert Counter(answer.status_code for answer in answers) == {202: 20, 402: 30}
    left = await builders.footprint(system, tenant_id)
    assert (left.jobs, left.holds, left.available) == (20, 20, 0)


async def test_a_refused_submit_is_not_remembered(system: Database, client: Client) -> None:
    tenant_id, mine = await a_caller(system, client, credits=4)
    headers = {"Idempotency-Key": "order-1"}
    problem_of(
        await mine.post("/v1/crawls", json=CRAWL, headers=headers), 402, "insufficient_credits"
    )
    await builders.a_grant(system, tenant_id, 10)
    answer = await mine.post("/v1/crawls", json={**CRAWL, "max_pages": 6}, headers=headers)
    assert answer.status_code == 202
