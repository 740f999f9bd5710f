"""The first thing a stranger does: start it, crawl, watch, read the pages, see what it cost."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs import progress as counters
from jobs.records import Progress
from tests.support.processes import free_port
from tests.support.whole import BenchSite, Whole

pytestmark = pytest.mark.journey

FINAL = {"succeeded", "failed", "cancelled"}
ENOUGH_SECONDS = 120


@pytest.fixture(scope="module")
def whole(servers_folder: Path) -> Iterator[Whole]:
    with Whole(servers_folder / "customer") as running:
        yield running


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchSite]:
    folder = tmp_path_factory.mktemp("site")
    with BenchSite(folder, free_port(), pages=300, mix="real").serving() as site:
        yield site


def watch(whole: Whole, job_id: str) -> dict[str, Any]:
    """Polls to the end; at every poll both sums hold and every credit is somewhere."""
    before: dict[str, int] = {}
    deadline = time.monotonic() + ENOUGH_SECONDS
    while time.monotonic() < deadline:
        job = whole.get(f"/v1/jobs/{job_id}")
        credits = whole.get("/v1/credits")
        assert counters.adds_up(Progress(**job["progress"]))
        assert job["progress"]["admitted"] <= 5_000
        assert (
            credits["available"] + credits["held"] + credits["charged"]["lifetime"]
            == credits["granted"]
        )
        growing = {
            name: count
            for name, count in job["progress"].items()
            if name not in {"queued", "in_flight"}
        }
        assert all(growing[name] >= before.get(name, 0) for name in growing)
        before = growing
        if job["state"] in FINAL:
            return job
    raise AssertionError(f"the job did not end: {job}")


def test_the_main_job(whole: Whole, bench: BenchSite) -> None:
    accepted = whole.http.post("/v1/crawls", json={"url": bench.base + "/", "max_pages": 5_000})
    assert accepted.status_code == 202
    assert accepted.headers["location"] == f"/v1/jobs/{accepted.json()['job_id']}"
    assert accepted.headers["x-credits-reserved"] == "5000"

    job = watch(whole, accepted.json()["job_id"])

    listed = bench.urls()
    pages = whole.pages(job["job_id"])
    succeeded = [page for page in pages if page["status"] == "succeeded"]
    assert (job["state"], job["completion_reason"], job["partial"]) == (
        "succeeded",
        "frontier_exhausted",
        False,
    )
    assert sorted(page["url"] for page in succeeded) == sorted(listed["html_pages"])
    assert all(page["markdown"].strip() and page["links"] for page in succeeded)
    assert [page["index"] for page in pages] == list(range(len(pages)))
    assert job["usage"]["credits_charged"] == len(succeeded)
    assert sum(page["credits"] for page in pages) == len(succeeded)

    asked = bench.asked()
    assert {url: asked[url] for url in listed["html_pages"] if asked[url] != 1} == {}
    assert [url for url in asked if "/private/" in url] == []
    assert max(asked.values()) == 1


def test_the_bill_can_be_followed_to_the_credit(whole: Whole, bench: BenchSite) -> None:
    job = watch(whole, whole.submit(bench.base + "/", max_pages=40)["job_id"])

    entries = whole.get("/v1/credits/entries", job_id=job["job_id"], limit=1000)["items"]

    by_kind: dict[str, int] = {}
    for entry in entries:
        by_kind[entry["kind"]] = by_kind.get(entry["kind"], 0) + entry["amount"]
    assert by_kind["reserve"] == job["usage"]["credits_reserved"] == 40
    assert by_kind["charge"] == job["usage"]["credits_charged"] == job["progress"]["succeeded"]
    assert by_kind.get("release", 0) == job["usage"]["credits_released"]
    assert job["completion_reason"] == "page_limit"
    assert job["progress"]["admitted"] == 40


def test_a_cancelled_crawl_asks_for_nothing_more(whole: Whole, bench: BenchSite) -> None:
    job_id = whole.submit(bench.base + "/", max_pages=5_000, delay_seconds=0.2)["job_id"]
    deadline = time.monotonic() + ENOUGH_SECONDS
    while whole.get(f"/v1/jobs/{job_id}")["progress"]["succeeded"] < 2:
        assert time.monotonic() < deadline

    answer = whole.http.delete(f"/v1/jobs/{job_id}")
    asked = sum(bench.asked().values())
    job = watch(whole, job_id)

    assert answer.status_code == 200
    assert answer.json()["state"] == "cancelled"
    assert job["completion_reason"] == "cancelled"
    assert job["usage"]["credits_charged"] == job["progress"]["succeeded"]
    assert not job["usage"]["settlement_pending"]
    assert sum(bench.asked().values()) == asked
    assert whole.http.delete(f"/v1/jobs/{job_id}").json() == job


def test_a_second_start_finds_everything_again(servers_folder: Path, bench: BenchSite) -> None:
    folder = servers_folder / "twice"
    with Whole(folder) as first:
        job = watch(first, first.submit(bench.base + "/", max_pages=3)["job_id"])
        pages = first.pages(job["job_id"])
        keys = first.keys
        assert first.stop() == 0
        assert not (folder / "connection.json").exists()

    with Whole(folder) as second:
        assert second.keys["tenant_key"] == keys["tenant_key"]
        assert second.get(f"/v1/jobs/{job['job_id']}") == job
        assert second.pages(job["job_id"]) == pages


def test_with_arq_switched_off_the_main_job_is_the_same(
    servers_folder: Path, bench: BenchSite
) -> None:
    with Whole(servers_folder / "no-arq", arq="off") as whole:
        job = watch(whole, whole.submit(bench.base + "/", max_pages=60)["job_id"])

        assert (job["state"], job["completion_reason"]) == ("succeeded", "page_limit")
        assert job["usage"]["credits_charged"] == job["progress"]["succeeded"]
