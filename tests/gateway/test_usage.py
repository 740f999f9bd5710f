"""Usage in groups, and the feed in each of its forms."""

import csv
import importlib
import importlib.util
import io
import json

import httpx
import pytest

from accounting import feed
from runtime.database import Database
from tests.gateway.conftest import Client
from tests.support import builders, problems, work

needs_parquet = pytest.mark.skipif(
    importlib.util.find_spec("arro3") is None, reason="the extra `parquet` is not installed"
)


async def a_customer(system: Database, client: Client) -> httpx.AsyncClient:
    """Two charged pages, one failed, in a job with a hostile tag; the feed is up to date."""
    tenant = await builders.a_tenant(system)
    await builders.a_grant(system, tenant.tenant_id, 100, meta={"note": "=1+1"})
    job_id = await builders.a_job(system, tenant.tenant_id, max_pages=10, tags=["a", "b"])
    async with system.connection() as connection:
        run = await builders.claimed(connection, job_id)
        await builders.finished_pages(connection, run, ["succeeded", "failed", "succeeded"])
    await work.finish(system, run)
    await feed.number(system)
    return client(await builders.a_key(system, tenant.tenant_id))


@pytest.mark.parametrize("by", ["day", "kind", "key", "host", "tag"])
async def test_usage_agrees_with_the_entries(system: Database, client: Client, by: str) -> None:
    mine = await a_customer(system, client)
    entries = (await mine.get("/v1/credits/entries", params={"kind": "charge"})).json()["items"]

    told = (await mine.get("/v1/usage", params={"by": by})).json()

    assert told["total"]["credits_charged"] == sum(entry["amount"] for entry in entries) == 2
    assert {group["credits_charged"] for group in told["items"]} == {2}
    assert len(told["items"]) == (2 if by == "tag" else 1)
    assert told["next"] is None


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"by": "colour"}, "by"),
        ({"by": "day", "from": "yesterday"}, "from"),
        (
            {"by": "day", "from": "2026-02-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"},
            "until",
        ),
    ],
)
async def test_usage_that_cannot_be_told_is_refused(
    system: Database, client: Client, params: dict[str, str], path: str
) -> None:
    mine = await a_customer(system, client)

    answer = await mine.get("/v1/usage", params=params)

    problems.problem_of(answer, 422, "invalid_request")
    assert [error["path"] for error in answer.json()["errors"]] == [path]


async def test_the_feed_goes_on_where_it_was_left(system: Database, client: Client) -> None:
    mine = await a_customer(system, client)
    seen, path = [], "/v1/usage/events?limit=2"
    while True:
        answer = await mine.get(path)
        if not answer.json()["items"]:
            break
        seen += [(event["seq"], event["kind"]) for event in answer.json()["items"]]
        path = answer.links["next"]["url"]
        assert f"after={answer.json()['next']}&" in path

    assert seen == list(enumerate(["grant", "reserve", "charge", "release", "release"], 1))
    end = await mine.get("/v1/usage/events", params={"after": "5"})
    assert end.json() == {"items": [], "next": 5}


async def test_nobody_is_fed_anothers_entries(system: Database, client: Client) -> None:
    await a_customer(system, client)
    stranger = await builders.a_tenant(system)
    theirs = client(await builders.a_key(system, stranger.tenant_id))

    assert (await theirs.get("/v1/usage/events")).json() == {"items": [], "next": 0}


async def test_the_csv_of_the_feed_has_every_event(system: Database, client: Client) -> None:
    mine = await a_customer(system, client)
    items = (await mine.get("/v1/usage/events")).json()["items"]

    answer = await mine.get("/v1/usage/events", params={"format": "csv"})

    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [int(row["seq"]) for row in rows] == [1, 2, 3, 4, 5]
    assert [row["kind"] for row in rows] == [event["kind"] for event in items]
    assert json.loads(rows[0]["meta"]) == {"note": "=1+1"}
    assert 'rel="next"' in answer.headers["link"]


async def test_cloudevents_name_each_event_once(system: Database, client: Client) -> None:
    mine = await a_customer(system, client)

    answer = await mine.get("/v1/usage/events", params={"format": "cloudevents"})

    assert answer.headers["content-type"].startswith("application/cloudevents-batch+json")
    told = answer.json()
    assert [event["id"] for event in told] == ["1", "2", "3", "4", "5"]
    assert {event["specversion"] for event in told} == {"1.0"}
    assert len({event["source"] for event in told}) == 1
    charge = next(event for event in told if event["type"] == "pagetoll.credits.charge")
    assert charge["data"]["amount"] == 2
    assert charge["time"].endswith("Z")


@needs_parquet
async def test_parquet_has_every_event(system: Database, client: Client) -> None:
    mine = await a_customer(system, client)
    items = (await mine.get("/v1/usage/events")).json()["items"]

    answer = await mine.get("/v1/usage/events", params={"format": "parquet"})

    files = importlib.import_module("arro3.io")
    table = files.read_parquet(io.BytesIO(answer.content)).read_all()
    assert table["amount"].to_pylist() == [event["amount"] for event in items]
    assert table["job_id"].to_pylist() == [event["job_id"] for event in items]
    moments = [f"{moment:%Y-%m-%dT%H:%M:%S.%f}" for moment in table["recorded_at"].to_pylist()]
    assert [moment[:19] for moment in moments] == [event["recorded_at"][:19] for event in items]


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "9" * 30])
async def test_a_place_that_the_feed_never_gave_is_refused(
    system: Database, client: Client, after: str
) -> None:
    mine = await a_customer(system, client)

    answer = await mine.get("/v1/usage/events", params={"after": after})

    problems.problem_of(answer, 400, "invalid_cursor")
