"""What users of metered APIs complained about, each as a test over HTTP."""

import asyncio
from collections import Counter

from runtime.database import Database
from runtime.redis import Signals
from runtime.settings import Settings
from tests.gateway.conftest import Client, StartGateway
from tests.support import builders
from tests.support.problems import problem_of

CRAWL = {"url": "https://example.com/", "max_pages": 1}
BALANCE = 40
SUBMITS = 90


async def test_two_gateways_under_a_flushed_redis_spend_one_balance_to_the_last_credit(
    system: Database, client: Client, start_gateway: StartGateway, gateway_settings: Settings
) -> None:
    """Exactly as many as the credits pay for: none refused too early, none taken too many."""
    tenant = await builders.a_tenant(system, credits=BALANCE)
    key = await builders.a_key(system, tenant.tenant_id)
    gateways = [client(key), client(key, start_gateway())]
    signals = Signals(gateway_settings.redis_url)
    done = asyncio.Event()

    async def flush() -> int:
        flushed = 0
        while not done.is_set():
            await signals.client.flushall()
            flushed += 1
            await asyncio.sleep(0)
        return flushed

    flushing = asyncio.create_task(flush())
    answers = await asyncio.gather(
        *(gateways[number % 2].post("/v1/crawls", json=CRAWL) for number in range(SUBMITS))
    )
    done.set()

    assert await flushing > 0
    await signals.close()
    assert Counter(answer.status_code for answer in answers) == {
        202: BALANCE,
        402: SUBMITS - BALANCE,
    }
    left = await builders.footprint(system, tenant.tenant_id)
    assert (left.jobs, left.holds, left.available) == (BALANCE, BALANCE, 0)


async def test_a_payment_told_to_two_gateways_many_times_is_given_once(
    system: Database, client: Client, start_gateway: StartGateway
) -> None:
    tenant = await builders.a_tenant(system)
    key = await builders.a_key(system, tenant.tenant_id, scopes=["admin"])
    gateways = [client(key), client(key, start_gateway())]
    body = {"amount": 25, "op_key": "payment-31", "source": "purchase"}

    answers = await asyncio.gather(
        *(
            gateways[number % 2].post(f"/admin/v1/tenants/{tenant.tenant_id}/grants", json=body)
            for number in range(20)
        )
    )

    assert {answer.is_success for answer in answers} == {True}
    assert len({answer.json()["lot_id"] for answer in answers}) == 1
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 25


async def test_a_refusal_tells_the_same_balance_as_the_credits_call(
    system: Database, client: Client
) -> None:
    """What is held is told apart, so that nobody takes it for spent."""
    tenant = await builders.a_tenant(system, credits=100)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    await mine.post("/v1/crawls", json=CRAWL | {"max_pages": 70})

    refused = await mine.post("/v1/crawls", json=CRAWL | {"max_pages": 31})
    shown = (await mine.get("/v1/credits")).json()

    problem = problem_of(refused, 402, "insufficient_credits")
    assert (problem["required"], problem["available"]) == (31, shown["available"])
    assert (shown["available"], shown["held"], shown["charged"]["lifetime"]) == (30, 70, 0)


async def test_credits_that_one_gateway_gives_back_are_there_for_the_other_at_once(
    system: Database, client: Client, start_gateway: StartGateway
) -> None:
    """No gateway remembers a balance or a hold."""
    tenant = await builders.a_tenant(system, credits=10)
    key = await builders.a_key(system, tenant.tenant_id)
    one, other = client(key), client(key, start_gateway())
    for _ in range(5):
        submitted = await one.post("/v1/crawls", json=CRAWL | {"max_pages": 10})
        problem_of(await other.post("/v1/crawls", json=CRAWL), 402, "insufficient_credits")
        cancelled = await other.delete(submitted.headers["Location"])
        assert cancelled.json()["state"] == "cancelled"
        one, other = other, one

    assert (await builders.balance_of(system, tenant.tenant_id)).available == 10


async def test_a_tenant_with_fewer_credits_than_a_page_is_told_so_and_never_clamped(
    system: Database, client: Client
) -> None:
    tenant = await builders.a_tenant(system, credits=3)
    mine = client(await builders.a_key(system, tenant.tenant_id))

    none = problem_of(
        await mine.post("/v1/crawls", json={"url": CRAWL["url"]}), 422, "invalid_request"
    )
    more = problem_of(
        await mine.post("/v1/crawls", json=CRAWL | {"max_pages": 4}), 402, "insufficient_credits"
    )
    all_of_it = await mine.post("/v1/crawls", json=CRAWL | {"max_pages": 3})

    assert none["errors"][0]["path"] == "$.max_pages"
    assert more["max_affordable_pages"] == 3
    assert (all_of_it.status_code, all_of_it.json()["max_pages"]) == (202, 3)
    assert all_of_it.json()["warnings"] == []


async def test_without_a_key_the_same_body_again_is_another_job(
    system: Database, client: Client
) -> None:
    """Nothing is guessed: two equal crawls may both be meant, and only a key says otherwise."""
    tenant = await builders.a_tenant(system, credits=10)
    mine = client(await builders.a_key(system, tenant.tenant_id))

    answers = [await mine.post("/v1/crawls", json=CRAWL) for _ in range(2)]

    assert len({answer.json()["job_id"] for answer in answers}) == 2
    left = await builders.footprint(system, tenant.tenant_id)
    assert (left.jobs, left.holds, left.available) == (2, 2, 8)
