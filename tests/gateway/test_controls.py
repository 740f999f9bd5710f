"""Pause, resume, extend and retry over HTTP; each may be sent twice."""

from runtime import ids
from runtime.database import Database
from tests.gateway.conftest import Client
from tests.support import builders, work
from tests.support.problems import problem_of


async def a_job(system: Database, client: Client, **fields):
    tenant = await builders.a_tenant(system, credits=1_000)
    job_id = await builders.a_job(system, tenant.tenant_id, **fields)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    return tenant.tenant_id, job_id, mine


async def test_pause_and_resume_answer_with_the_job(system: Database, client: Client) -> None:
    _, job_id, mine = await a_job(system, client)

    for path, state in (("pause", "paused"), ("pause", "paused"), ("resume", "queued")):
        answer = await mine.post(f"/v1/jobs/{job_id}/{path}")
        assert (answer.status_code, answer.json()["state"]) == (200, state)
        assert "Retry-After" in answer.headers
    assert (await mine.post(f"/v1/jobs/{job_id}/resume")).status_code == 200
    await mine.delete(f"/v1/jobs/{job_id}")


async def test_what_cannot_be_done_any_more_is_said(system: Database, client: Client) -> None:
    _, job_id, mine = await a_job(system, client)
    await mine.delete(f"/v1/jobs/{job_id}")

    for path in ("pause", "resume"):
        answer = await mine.post(f"/v1/jobs/{job_id}/{path}")
        problem_of(answer, 409, "invalid_state")
    answer = await mine.post(f"/v1/jobs/{job_id}/extend", json={"max_pages": 20})
    problem_of(answer, 409, "invalid_state")
    answer = await mine.post(f"/v1/jobs/{job_id}/retry")
    problem_of(answer, 409, "invalid_state")


async def test_a_job_is_extended(system: Database, client: Client) -> None:
    _, job_id, mine = await a_job(system, client, max_pages=10)

    moved = []
    for _ in range(2):
        answer = await mine.post(f"/v1/jobs/{job_id}/extend", json={"max_pages": 30})
        assert answer.json()["max_pages"] == 30
        moved.append(answer.headers["X-Credits-Reserved"])

    assert moved == ["20", "0"]
    await mine.delete(f"/v1/jobs/{job_id}")


async def test_an_extension_beyond_plan_or_balance_is_refused(
    system: Database, client: Client
) -> None:
    _, job_id, mine = await a_job(system, client)
    url = f"/v1/jobs/{job_id}/extend"

    problem_of(await mine.post(url, json={"max_pages": 5_000}), 402, "insufficient_credits")
    for body in ({"max_pages": 9_999_999}, {"timeout_seconds": 86_401}, {"pages": 1}):
        assert (await mine.post(url, json=body)).status_code == 422
    await mine.delete(f"/v1/jobs/{job_id}")


async def test_a_retry_is_one_new_job_however_often_it_is_sent(
    system: Database, client: Client
) -> None:
    tenant_id, job_id, mine = await a_job(system, client)
    run = await work.claim(system)
    await work.pages(system, run)
    await work.settle(system, run, [work.failed(0, "timeout")])
    await work.finish(system, run, "upstream_failure")

    answers = [await mine.post(f"/v1/jobs/{job_id}/retry") for _ in range(2)]

    first, second = (answer.json() for answer in answers)
    assert [answer.status_code for answer in answers] == [202, 202]
    assert first["job_id"] == second["job_id"] != str(job_id)
    assert first["parent_job_id"] == str(job_id)
    assert answers[0].headers["X-Credits-Reserved"] == "1"
    assert answers[1].headers["Idempotent-Replayed"] == "true"
    own = await mine.post(f"/v1/jobs/{job_id}/retry", headers={"Idempotency-Key": "again"})
    assert own.json()["job_id"] != first["job_id"]
    for made in (first, own.json()):
        await mine.delete(f"/v1/jobs/{made['job_id']}")
    assert (await builders.balance_of(system, tenant_id)).held == 0


async def test_another_tenants_job_is_no_job(system: Database, client: Client) -> None:
    _, job_id, mine = await a_job(system, client)
    _, _, stranger = await a_job(system, client)

    for path, body in (("pause", None), ("resume", None), ("extend", {}), ("retry", None)):
        for other in (job_id, ids.new_id()):
            answer = await stranger.post(f"/v1/jobs/{other}/{path}", json=body)
            problem_of(answer, 404, "not_found")
    await mine.delete(f"/v1/jobs/{job_id}")


async def test_an_operator_sees_jobs_of_all_tenants(system: Database, client: Client) -> None:
    tenant_id, job_id, mine = await a_job(system, client)
    admin = client(await builders.a_key(system, tenant_id, scopes=["admin"]))

    answer = await admin.get("/admin/v1/jobs", params={"tenant_id": str(tenant_id)})

    (found,) = answer.json()["items"]
    assert (found["job_id"], found["state"], found["deaths"]) == (str(job_id), "queued", 0)
    assert (await mine.get("/admin/v1/jobs")).status_code == 403
    await mine.delete(f"/v1/jobs/{job_id}")
