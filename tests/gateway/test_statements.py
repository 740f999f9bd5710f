"""Statements, bills and explanations as a billing clerk reads them."""

import csv
import importlib.util
import io
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from accounting import signed_statements
from runtime.database import Database
from tests.gateway.conftest import Client, StartGateway
from tests.support import builders, problems, work

needs_pdf = pytest.mark.skipif(
    importlib.util.find_spec("typst") is None, reason="the extra `pdf` is not installed"
)


async def a_clerk(system: Database, client: Client) -> tuple[UUID, UUID, httpx.AsyncClient]:
    """A tenant with a finished job that charged 2 of 10 credits, and its key."""
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, tenant.tenant_id, max_pages=10)
    async with system.connection() as connection:
        run = await builders.claimed(connection, job_id)
        await builders.finished_pages(connection, run, ["succeeded", "failed", "succeeded"])
    await work.finish(system, run)
    key = await builders.a_key(system, tenant.tenant_id, scopes=["billing:read"])
    return tenant.tenant_id, job_id, client(key)


async def test_a_statement_proves_itself(system: Database, client: Client) -> None:
    _, _, clerk = await a_clerk(system, client)

    told = (await clerk.get("/v1/credits/statement")).json()

    assert told["period"] == f"{datetime.now(UTC):%Y-%m}"
    assert told["closed_at"] is None
    effects = sum(line["effect"] for line in told["lines"])
    assert told["opening"]["total"] + effects == told["closing"]["total"] == 98
    assert told["proves"] is True
    assert told["ledger_head"]["seal_no"] == 0


async def test_a_month_and_any_time_may_be_asked_for(system: Database, client: Client) -> None:
    _, _, clerk = await a_clerk(system, client)
    month = f"{datetime.now(UTC):%Y-%m}"

    by_month = (await clerk.get("/v1/credits/statement", params={"period": month})).json()
    by_time = (
        await clerk.get("/v1/credits/statement", params={"from": by_month["starts_at"]})
    ).json()

    assert by_time["lines"] == by_month["lines"]
    assert by_time["closing"] == by_month["closing"]
    assert by_time["period"] is None


async def test_the_csv_has_the_same_lines(system: Database, client: Client) -> None:
    _, _, clerk = await a_clerk(system, client)
    told = (await clerk.get("/v1/credits/statement")).json()

    answer = await clerk.get("/v1/credits/statement", params={"format": "csv"})

    assert answer.headers["content-type"].startswith("text/csv")
    assert f"credits-{told['period']}.csv" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert {row["of"]: int(row["effect"]) for row in rows if row["line"] == "movement"} == {
        line["kind"]: line["effect"] for line in told["lines"]
    }
    closing = {row["of"]: int(row["credits"]) for row in rows if row["line"] == "closing"}
    assert closing == told["closing"]


@needs_pdf
async def test_the_pdf_is_the_same_each_time(system: Database, client: Client) -> None:
    _, _, clerk = await a_clerk(system, client)
    until = datetime.now(UTC).isoformat()
    params = {"format": "pdf", "from": "2026-01-01T00:00:00Z", "until": until}

    first = await clerk.get("/v1/credits/statement", params=params)
    second = await clerk.get("/v1/credits/statement", params=params)

    assert first.headers["content-type"] == "application/pdf"
    assert first.content.startswith(b"%PDF-")
    assert first.content == second.content


async def test_without_its_extra_a_pdf_is_refused(system: Database, client: Client) -> None:
    if importlib.util.find_spec("typst") is not None:
        pytest.skip("the extra `pdf` is installed")
    _, _, clerk = await a_clerk(system, client)

    answer = await clerk.get("/v1/credits/statement", params={"format": "pdf"})

    problems.problem_of(answer, 422, "invalid_request")
    assert "extra" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"period": "2026-13"}, "period"),
        ({"period": "2026-1"}, "period"),
        ({"period": "1969-12"}, "period"),
        ({"period": "2026-11\n"}, "period"),
        ({"period": "\u0662\u0660\u0662\u0666-11"}, "period"),
        ({"period": "2998-01"}, "period"),
        ({"period": "2026-01", "from": "2026-01-01T00:00:00Z"}, "period"),
        ({"until": "2026-01-01T00:00:00Z"}, "from"),
        ({"from": "2026-01-01"}, "from"),
        ({"from": "2998-01-01T00:00:00Z", "until": "2999-01-01T00:00:00Z"}, "from"),
        ({"from": "2026-02-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, "until"),
        ({"as_of": "2998-01-01T00:00:00Z"}, "as_of"),
        ({"as_of": "2020-01-01T00:00:00Z"}, "as_of"),
        ({"format": "xml"}, "format"),
    ],
)
async def test_a_time_that_cannot_be_is_refused_by_its_name(
    system: Database, client: Client, params: dict[str, str], path: str
) -> None:
    _, _, clerk = await a_clerk(system, client)

    answer = await clerk.get("/v1/credits/statement", params=params)

    problems.problem_of(answer, 422, "invalid_request")
    assert [error["path"] for error in answer.json()["errors"]] == [path]


async def test_the_balance_and_the_statement_as_of_an_instant_agree(
    system: Database, client: Client
) -> None:
    tenant_id, _, clerk = await a_clerk(system, client)
    async with system.connection() as connection:
        moments = await connection.fetch(
            "SELECT recorded_at FROM transfer WHERE tenant_id = $1", tenant_id
        )
    for row in moments:
        instant = {"as_of": row["recorded_at"].isoformat()}
        balance = (await clerk.get("/v1/credits", params=instant)).json()
        told = (await clerk.get("/v1/credits/statement", params=instant)).json()

        assert "lots" not in balance
        assert (balance["available"], balance["held"]) == (
            told["closing"]["available"],
            told["closing"]["held"],
        )
        assert balance["granted"] - balance["adjusted_out"] == (
            balance["available"]
            + balance["held"]
            + balance["charged"]["lifetime"]
            - balance["refunded"]
            + balance["expired"]
        )
    future = {"as_of": (datetime.now(UTC) + timedelta(hours=1)).isoformat()}
    problems.problem_of(await clerk.get("/v1/credits", params=future), 422, "invalid_request")


async def test_a_jobs_bill_closes_with_zero(system: Database, client: Client) -> None:
    _, job_id, clerk = await a_clerk(system, client)

    told = (await clerk.get(f"/v1/jobs/{job_id}/statement")).json()

    assert told["closing"] == 0
    assert told["proves"] is True
    assert [page["credits"] for page in told["pages"]] == [1, 0, 1]
    assert [entry["kind"] for entry in told["entries"]] == [
        "reserve",
        "charge",
        "release",
        "release",
    ]
    part = (await clerk.get(f"/v1/jobs/{job_id}/statement", params={"limit": 2})).json()
    assert (part["next"], len(part["pages"])) == (1, 2)


async def test_an_entry_leads_to_its_pages_and_back(system: Database, client: Client) -> None:
    _, job_id, clerk = await a_clerk(system, client)
    entries = (await clerk.get("/v1/credits/entries", params={"kind": "charge"})).json()
    entry_id = entries["items"][0]["entry_id"]

    told = (await clerk.get("/v1/credits/explain", params={"entry": entry_id})).json()
    back = (
        await clerk.get("/v1/credits/explain", params={"job_id": str(job_id), "page": "2"})
    ).json()

    assert told["job"]["job_id"] == str(job_id)
    assert [page["index"] for page in told["pages"]] == [0, 2]
    assert back["entry"]["entry_id"] == entry_id
    assert back["pages"] == [told["pages"][1]]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"entry": "1", "job_id": "a", "page": "1"},
        {"page": "1"},
        {"entry": "-1"},
        {"entry": "9" * 30},
        {"entry": "\u0661"},
        {"entry": ""},
    ],
)
async def test_what_is_no_entry_is_refused(
    system: Database, client: Client, params: dict[str, str]
) -> None:
    _, _, clerk = await a_clerk(system, client)

    problems.problem_of(
        await clerk.get("/v1/credits/explain", params=params), 422, "invalid_request"
    )


async def test_nobody_reads_anothers_bill(system: Database, client: Client) -> None:
    _, job_id, clerk = await a_clerk(system, client)
    _, _, stranger = await a_clerk(system, client)
    entries = (await clerk.get("/v1/credits/entries", params={"kind": "charge"})).json()
    calls: list[tuple[str, dict[str, Any]]] = [
        (f"/v1/jobs/{job_id}/statement", {}),
        ("/v1/credits/explain", {"entry": entries["items"][0]["entry_id"]}),
        ("/v1/credits/explain", {"job_id": str(job_id), "page": "0"}),
    ]
    for path, params in calls:
        problems.problem_of(await stranger.get(path, params=params), 404, "not_found")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/credits/statement",
        "/v1/credits/explain?entry=1",
        "/v1/usage?by=day",
        "/v1/usage/events",
    ],
)
async def test_reading_bills_needs_its_scope(system: Database, client: Client, path: str) -> None:
    tenant = await builders.a_tenant(system)
    key = await builders.a_key(system, tenant.tenant_id, scopes=["jobs:read"])

    problems.problem_of(await client(key).get(path), 403, "forbidden")


async def test_a_statement_is_signed_whole(
    system: Database, client: Client, start_gateway: StartGateway
) -> None:
    tenant_id, _, _ = await a_clerk(system, client)
    key = await builders.a_key(system, tenant_id, scopes=["billing:read"])
    clerk = client(key, start_gateway(secret_key="a secret of this test"))

    answer = await clerk.get("/v1/credits/statement")
    signing_key = (await clerk.get("/v1/credits/signing-key")).json()

    document = signed_statements.check(answer.content, public_key=signing_key["public_key"])
    assert document["closing"]["total"] == 98
