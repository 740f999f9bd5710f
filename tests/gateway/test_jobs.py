"""Reading, listing and cancelling jobs; another tenant's job is no job."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs import queue, runs
from runtime import ids
from runtime.database import Database
from runtime.redis import Signals
from runtime.settings import Settings
from tests.gateway.conftest import Client
from tests.support import builders
from tests.support.problems import problem_of

STATUS_FIELDS = {
    "job_id", "kind", "state", "phase", "cancel_requested", "partial", "created_at", "updated_at",
    "started_at", "finished_at", "deadline_at", "completion_reason", "error", "progress", "usage",
    "warnings", "tags", "metadata", "parent_job_id", "url", "max_pages", "price_version", "prices",
    "priority", "timeout_seconds", "paused_at", "pause_reason", "seconds_left", "queue",
}  # fmt: skip


async def test_a_status_has_the_contracts_fields_and_sums(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, tenant.tenant_id)
    answer = await client(await builders.a_key(system, tenant.tenant_id)).get(f"/v1/jobs/{job_id}")
    job = answer.json()
    assert set(job) == STATUS_FIELDS
    progress = job["progress"]
    assert progress["discovered"] == progress["discovery_excluded"] + progress["admitted"] == 1
    assert answer.headers["Retry-After"] == "2"
    created, deadline = (
        datetime.fromisoformat(job[name]) for name in ("created_at", "deadline_at")
    )
    assert deadline - created == timedelta(minutes=30, seconds=300)


async def test_a_list_pages_through_newest_first(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    made = [str(await builders.a_job(system, tenant.tenant_id)) for _ in range(7)]
    mine = client(await builders.a_key(system, tenant.tenant_id))
    found: list[str] = []
    after: dict[str, str] = {}
    for expected in (3, 3, 1):
        answer = (await mine.get("/v1/jobs", params={"limit": "3", **after})).json()
        assert len(answer["items"]) == expected
        found += [job["job_id"] for job in answer["items"]]
        after = {"after": answer["next"]}
    assert answer["next"] is None
    assert found == made[::-1]


async def test_filters_choose_jobs(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    plain = str(await builders.a_job(system, tenant.tenant_id))
    tagged = str(await builders.a_job(system, tenant.tenant_id, tags=["red", "blue"]))
    mine = client(await builders.a_key(system, tenant.tenant_id))
    await mine.delete(f"/v1/jobs/{plain}")
    before = (datetime.now(UTC) - timedelta(hours=1)).isoformat()

    async def chosen(**params: str) -> list[str]:
        answer = await mine.get("/v1/jobs", params=params)
        return [job["job_id"] for job in answer.json()["items"]]

    assert await chosen(tag="blue") == [tagged]
    assert await chosen(tag="green") == []
    assert await chosen(state="cancelled") == [plain]
    assert await chosen(state="queued", kind="crawl") == [tagged]
    assert await chosen(kind="map") == []
    assert await chosen(created_after=before) == [tagged, plain]
    assert await chosen(created_before=before) == []


@pytest.mark.parametrize("call", ["GET {}", "DELETE {}", "GET {}/results"])
async def test_another_tenants_job_is_answered_as_none(
    call: str, system: Database, client: Client
) -> None:
    owner = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, owner.tenant_id)
    stranger = await builders.a_tenant(system)
    theirs = client(await builders.a_key(system, stranger.tenant_id))
    before = await builders.footprint(system, owner.tenant_id)
    method, path = call.split()
    answer = await theirs.request(method, path.format(f"/v1/jobs/{job_id}"))
    unknown = await theirs.request(method, path.format(f"/v1/jobs/{ids.new_id()}"))
    expected = {**problem_of(unknown, 404, "not_found"), "request_id": ""}
    assert {**problem_of(answer, 404, "not_found"), "request_id": ""} == expected
    assert await builders.footprint(system, owner.tenant_id) == before
    assert (await theirs.get("/v1/jobs")).json()["items"] == []


async def test_a_queued_job_is_cancelled_at_once_and_costs_nothing(
    system: Database, client: Client
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, tenant.tenant_id)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    answer = await mine.delete(f"/v1/jobs/{job_id}")

    job = answer.json()
    assert answer.status_code == 200
    assert (job["state"], job["completion_reason"]) == ("cancelled", "cancelled")
    assert job["usage"]["credits_released"] == 10
    assert job["usage"]["settlement_pending"] is False
    assert job["progress"]["skipped"] == 1
    assert "Retry-After" not in answer.headers
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 100
    again = await mine.delete(f"/v1/jobs/{job_id}")
    assert again.json() == job


async def test_cancelling_a_live_run_tells_it_and_waits_for_its_end(
    system: Database, client: Client, gateway_settings: Settings
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    job_id = await builders.a_job(system, tenant.tenant_id)
    async with system.connection() as connection:
        run = await builders.claimed(connection, job_id)
    signals = Signals(gateway_settings.redis_url)
    async with signals.listen([queue.CONTROL]) as hints:
        answer = await mine.delete(f"/v1/jobs/{job_id}")
        assert await anext(hints) == (queue.CONTROL, str(job_id))
        assert answer.json()["state"] == "cancelling"
    async with system.connection() as connection:
        await runs.hand_back(connection, run.lease)
    await signals.close()
    again = await mine.delete(f"/v1/jobs/{job_id}")
    assert again.json()["state"] == "cancelled"
