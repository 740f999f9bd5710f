"""Results in index order, each page once, with content and without it."""

from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from accounting import metering, retention
from jobs import results
from jobs.records import Content
from jobs.runs import Run
from runtime.content import ContentStore
from runtime.database import Database
from runtime.settings import Settings
from tests.gateway.conftest import Client
from tests.support import builders
from tests.support.problems import problem_of


async def a_run(
    system: Database, client: Client, *, max_pages: int
) -> tuple[Run, httpx.AsyncClient]:
    tenant = await builders.a_tenant(system, credits=1_000)
    job_id = await builders.a_job(system, tenant.tenant_id, max_pages=max_pages)
    async with system.connection() as connection:
        run = await builders.claimed(connection, job_id)
    return run, client(await builders.a_key(system, tenant.tenant_id))


async def settle(system: Database, run: Run, outcomes: list[Any], **fields: Any) -> None:
    async with system.connection() as connection:
        await builders.finished_pages(connection, run, outcomes, **fields)


async def finish(system: Database, run: Run) -> None:
    async with system.connection() as connection:
        await metering.finish(connection, run.lease, "frontier_exhausted")


async def test_pages_come_once_and_in_order_until_null(system: Database, client: Client) -> None:
    run, mine = await a_run(system, client, max_pages=7)
    await settle(system, run, ["succeeded"] * 5 + ["failed"] * 2)
    await finish(system, run)
    path = f"/v1/jobs/{run.lease.job_id}/results"
    seen: list[int] = []
    after: dict[str, int] = {}
    for _ in range(3):
        answer = (await mine.get(path, params={"limit": 3, **after})).json()
        seen += [page["index"] for page in answer["items"]]
        after = {"after": answer["next"]}
    assert answer["next"] is None
    assert answer["job_state"] == "succeeded"
    assert seen == list(range(7))


async def test_a_running_job_says_where_to_go_on(system: Database, client: Client) -> None:
    run, mine = await a_run(system, client, max_pages=5)
    path = f"/v1/jobs/{run.lease.job_id}/results"
    nothing = (await mine.get(path)).json()
    assert nothing == {"items": [], "next": -1, "job_state": "running"}
    await settle(system, run, ["succeeded", "failed", "succeeded"])
    some = (await mine.get(path, params={"after": nothing["next"]})).json()
    assert [page["index"] for page in some["items"]] == [0, 1, 2]
    assert some["next"] == 2
    again = (await mine.get(path, params={"after": 2})).json()
    assert (again["items"], again["next"]) == ([], 2)
    failed = (await mine.get(path, params={"status": "failed"})).json()
    assert [page["index"] for page in failed["items"]] == [1]
    assert failed["next"] == 2
    await finish(system, run)
    assert (await mine.get(path, params={"after": 2})).json()["next"] is None


async def test_a_page_has_its_fields_and_its_content(
    system: Database, client: Client, gateway_settings: Settings
) -> None:
    run, mine = await a_run(system, client, max_pages=1)
    frame = results.pack(Content(markdown="# Hello", links=[{"url": "https://example.com/a"}]))
    segment = f"{retention.segment_prefix(run.lease.tenant_id, run.lease.job_id)}0001"
    await ContentStore(gateway_settings.content_place).put(segment, frame)
    await settle(
        system,
        run,
        ["succeeded"],
        title="Hello",
        segment=segment,
        segment_offset=0,
        segment_length=len(frame),
    )
    path = f"/v1/jobs/{run.lease.job_id}/results"
    (page,) = (await mine.get(path)).json()["items"]
    assert (page["markdown"], page["links"]) == ("# Hello", [{"url": "https://example.com/a"}])
    assert (page["status"], page["credits"], page["title"]) == ("succeeded", 1, "Hello")
    assert "html" not in page
    (bare,) = (await mine.get(path, params={"include_content": "false"})).json()["items"]
    assert "markdown" not in bare
    assert bare["url"] == "https://example.com/"


async def test_content_that_is_gone_is_410_and_the_pages_stay(
    system: Database, client: Client, tmp_path: Path
) -> None:
    run, mine = await a_run(system, client, max_pages=1)
    await settle(system, run, ["succeeded"])
    await finish(system, run)
    job_id = run.lease.job_id
    path = f"/v1/jobs/{job_id}/results"
    assert (await mine.get(path)).status_code == 200

    await expire(system, job_id)
    problem_of(await mine.get(path), 410, "result_expired")
    bare = (await mine.get(path, params={"include_content": "false"})).json()
    assert len(bare["items"]) == 1

    await retention.drop_due(system, ContentStore(str(tmp_path)))
    problem_of(await mine.get(path), 410, "result_expired")
    status = (await mine.get(f"/v1/jobs/{job_id}")).json()
    assert status["usage"]["credits_charged"] == 1


async def expire(system: Database, job_id: UUID) -> None:
    async with system.transaction() as tx:
        await tx.execute(
            "UPDATE job SET expires_at = now() - interval '1 s' WHERE job_id = $1", job_id
        )
