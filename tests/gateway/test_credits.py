"""The balance, the lots and the entries that a tenant can read."""

from datetime import UTC, datetime, timedelta

from runtime.database import Database
from tests.gateway.conftest import Client
from tests.support import builders


async def test_the_balance_adds_up_and_shows_its_lots(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    soon = datetime.now(UTC) + timedelta(days=1)
    await builders.a_grant(system, tenant.tenant_id, 50, expires_at=soon)
    await builders.a_job(system, tenant.tenant_id, max_pages=60)
    shown = (await client(await builders.a_key(system, tenant.tenant_id)).get("/v1/credits")).json()

    assert (shown["available"], shown["held"], shown["granted"]) == (90, 60, 150)
    assert shown["charged"] == {"period": 0, "lifetime": 0}
    assert shown["granted"] - shown["adjusted_out"] == (
        shown["available"]
        + shown["held"]
        + shown["charged"]["lifetime"]
        - shown["refunded"]
        + shown["expired"]
    )
    # the lot that expires first was spent first
    assert [(lot["amount"], lot["remaining"]) for lot in shown["lots"]] == [(100, 90)]


async def test_a_charge_is_in_the_period_and_the_lifetime(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, tenant.tenant_id, max_pages=3)
    async with system.connection() as connection:
        run = await builders.claimed(connection, job_id)
        await builders.finished_pages(connection, run, ["succeeded", "succeeded", "failed"])
    shown = (await client(await builders.a_key(system, tenant.tenant_id)).get("/v1/credits")).json()
    assert shown["charged"] == {"period": 2, "lifetime": 2}
    assert (shown["available"], shown["held"]) == (98, 0)


async def test_entries_page_through_and_can_be_chosen(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    first = await builders.a_job(system, tenant.tenant_id)
    await builders.a_job(system, tenant.tenant_id)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    await mine.delete(f"/v1/jobs/{first}")

    async def chosen(**params: str) -> list[str]:
        answer = await mine.get("/v1/credits/entries", params=params)
        return [entry["kind"] for entry in answer.json()["items"]]

    assert await chosen() == ["grant", "reserve", "reserve", "release"]
    assert await chosen(job_id=str(first)) == ["reserve", "release"]
    assert await chosen(kind="reserve") == ["reserve", "reserve"]
    now = datetime.now(UTC)
    assert await chosen(since=(now + timedelta(hours=1)).isoformat()) == []
    assert len(await chosen(until=(now + timedelta(hours=1)).isoformat())) == 4

    kinds, after = [], {}
    while True:
        answer = await mine.get("/v1/credits/entries", params={"limit": "3", **after})
        kinds += [entry["kind"] for entry in answer.json()["items"]]
        if answer.json()["next"] is None:
            break
        after = {"after": answer.json()["next"]}
    assert kinds == ["grant", "reserve", "reserve", "release"]


async def test_another_tenants_entries_are_never_shown(system: Database, client: Client) -> None:
    owner = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, owner.tenant_id)
    stranger = await builders.a_tenant(system)
    theirs = client(await builders.a_key(system, stranger.tenant_id))
    answer = await theirs.get("/v1/credits/entries", params={"job_id": str(job_id)})
    assert answer.json() == {"items": [], "next": None}
    assert (await theirs.get("/v1/credits")).json()["granted"] == 0
