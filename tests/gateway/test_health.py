"""Liveness, readiness, metrics, the document and its page."""

import asyncio
import re

from jobs import schema
from migrations import schema as migrated
from runtime.database import Database
from runtime.embedded.postgres import EmbeddedPostgres
from tests.gateway.conftest import Client, StartGateway
from tests.support import builders
from tests.support.problems import problem_of
from tests.support.processes import OwnProcess


async def test_a_whole_gateway_is_ready(client: Client) -> None:
    assert (await client().get("/healthz")).json() == {"status": "ok"}
    assert (await client().get("/readyz")).json() == {"status": "ready"}


async def test_a_gateway_starts_without_its_servers_and_says_what_is_missing(
    client: Client, start_gateway: StartGateway
) -> None:
    nowhere = "postgresql://pagetoll_app@/none?host=/nonexistent"
    process = start_gateway(
        database_url=nowhere, system_database_url=nowhere, redis_url="redis://127.0.0.1:1/0"
    )
    lonely = client(f"pt_live_{'a' * 12}_{'b' * 43}", process)
    assert (await lonely.get("/healthz")).status_code == 200
    problem = problem_of(await lonely.get("/readyz"), 503, "backend_unavailable")
    assert problem["missing"] == ["postgresql", "migrations", "redis"]
    answer = await lonely.get("/v1/credits")
    problem_of(answer, 503, "backend_unavailable")
    assert int(answer.headers["Retry-After"]) >= 1


async def test_a_database_without_its_schema_is_not_ready(
    client: Client, start_gateway: StartGateway, postgres_server: EmbeddedPostgres
) -> None:
    bare = postgres_server.url("pagetoll_app", "postgres")
    process = start_gateway(database_url=bare, system_database_url=bare)
    problem = problem_of(await client(None, process).get("/readyz"), 503, "backend_unavailable")
    assert problem["missing"] == ["migrations"]


async def test_a_database_that_is_not_there_is_not_ready(
    client: Client, start_gateway: StartGateway, postgres_server: EmbeddedPostgres
) -> None:
    nothing = postgres_server.url("pagetoll_app", "no_such_database")
    process = start_gateway(database_url=nothing)
    problem = problem_of(await client(None, process).get("/readyz"), 503, "backend_unavailable")
    assert problem["missing"] == ["postgresql", "migrations"]


def test_the_revision_that_readiness_asks_for_is_the_newest() -> None:
    assert migrated.head() == schema.SCHEMA_REVISION


async def test_metrics_have_route_templates_and_no_ids(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system, credits=10)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    crawl = {"url": "https://example.com/", "max_pages": 4}
    job_id = (await mine.post("/v1/crawls", json=crawl)).json()["job_id"]
    await mine.get(f"/v1/jobs/{job_id}")
    await mine.post("/v1/crawls", json={})
    await mine.get(f"/nothing/{job_id}")
    await mine.request("BREW", "/v1/jobs")
    text = (await mine.get("/metrics")).text

    for line in (
        'pagetoll_http_requests_total{method="GET",route="/v1/jobs/{job_id}",status="200"} 1.0',
        'pagetoll_http_requests_total{method="GET",route="unmatched",status="404"} 1.0',
        'pagetoll_http_requests_total{method="OTHER",route="unmatched",status="405"} 1.0',
        'pagetoll_http_request_duration_seconds_count{route="/v1/crawls"} 2.0',
        'pagetoll_jobs_submitted_total{kind="crawl"} 1.0',
        "pagetoll_credits_reserved_total 4.0",
        'pagetoll_refusals_total{code="invalid_request"}',
        "pagetoll_queued_jobs",
        "pagetoll_running_jobs",
        "pagetoll_queue_oldest_seconds",
        "pagetoll_leases_freed_total",
        "pagetoll_rings_repeated_total",
    ):
        assert line in text
    assert job_id not in text
    assert str(tenant.tenant_id) not in text


async def test_the_document_is_openapi_and_tells_of_problems_everywhere(client: Client) -> None:
    answer = await client().get("/schema/openapi.json")
    document = answer.json()
    assert document["openapi"].startswith("3.1")
    assert set(document["components"]["securitySchemes"]) == {"bearer", "apiKey"}
    references = set(re.findall(r'"#/components/(\w+)/([\w.]+)"', answer.text))
    assert all(name in document["components"][part] for part, name in references)
    for path, item in document["paths"].items():
        for operation in item.values():
            assert operation["responses"]["500"] == {"$ref": "#/components/responses/Problem"}
            assert operation.get("security") == (None if "/v1" in path else [])
    crawl = document["components"]["schemas"]["CrawlRequest"]
    assert crawl["additionalProperties"] is False
    assert crawl["required"] == ["url", "max_pages"]
    assert crawl["properties"]["max_depth"]["anyOf"][0]["minimum"] == 0
    submit = document["paths"]["/v1/crawls"]["post"]
    assert submit["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/CrawlRequest"
    }
    assert {"202", "402", "409", "413", "422", "429"} <= set(submit["responses"])


async def test_the_page_of_the_document_needs_no_other_host(client: Client) -> None:
    answer = await client().get("/schema")
    assert answer.status_code == 200
    assert "/v1/crawls" in answer.text
    assert "<script" not in answer.text
    assert not re.findall(r"(?:src|href)=['\"](?:https?:)?//", answer.text)
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    style = await client().get("/schema/style.css")
    assert style.headers["Content-Type"].startswith("text/css")


async def test_head_is_get_without_its_content(client: Client) -> None:
    for path in ("/healthz", "/readyz", "/schema", "/metrics"):
        head, get = await client().head(path), await client().get(path)
        assert (head.status_code, head.content) == (get.status_code, b"")
        assert head.headers["content-type"] == get.headers["content-type"]


async def test_callers_that_say_nothing_do_not_take_the_gateway_off_line(
    gateway: OwnProcess, client: Client
) -> None:
    port = gateway.settings.port
    idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(1_200)]
    try:
        assert (await client().get("/healthz")).status_code == 200
    finally:
        for _, writer in idle:
            writer.close()
        await asyncio.gather(*(w.wait_closed() for _, w in idle), return_exceptions=True)
