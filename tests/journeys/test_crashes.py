"""Kill anything at any moment: the job ends once, right, and every page is charged once."""

import asyncio
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from jobs import progress as counters
from jobs.records import Progress
from runtime.redis import Signals
from tests.support.processes import free_port
from tests.support.whole import BenchSite, Whole

pytestmark = [pytest.mark.journey, pytest.mark.slow]

PAGES = 2_000
SEED = int(os.environ.get("PAGETOLL_TEST_SEED", "20261130"))
ENOUGH_SECONDS = 240
OUTAGE_STATUS = 503


def poll(whole: Whole, job_id: str) -> dict[str, Any] | None:
    """A status whose sums hold, or None while PostgreSQL or the gateway is away (503 at most)."""
    answer = whole.http.get(f"/v1/jobs/{job_id}")
    if answer.status_code == OUTAGE_STATUS:
        assert answer.headers["retry-after"]
        return None
    assert answer.status_code == 200, answer.text
    job: dict[str, Any] = answer.json()
    assert counters.adds_up(Progress(**job["progress"]))
    usage = job["usage"]
    assert usage["credits_charged"] == job["progress"]["succeeded"]
    assert usage["credits_charged"] + usage["credits_released"] <= usage["credits_reserved"]
    return job


def wait_for(whole: Whole, job_id: str, succeeded: int) -> dict[str, Any]:
    deadline = time.monotonic() + ENOUGH_SECONDS
    while time.monotonic() < deadline:
        job = poll(whole, job_id)
        if job is not None and (job["finished_at"] or job["progress"]["succeeded"] >= succeeded):
            return job
    raise AssertionError(f"{succeeded} pages were not reached; the log:\n{whole.log[-3_000:]}")


def flush_redis(whole: Whole) -> None:
    async def flush() -> None:
        signals = Signals(f"unix://{find_socket(whole.folder)}")
        await signals.client.flushall()
        await signals.close()

    asyncio.run(flush())


def find_socket(folder: Path) -> Path:
    (socket,) = folder.rglob("*valkey*.sock")
    return socket


class Story:
    """One crawl that is disturbed at random moments, and what must be true of it afterwards."""

    def __init__(self, whole: Whole, bench: BenchSite) -> None:
        self.whole = whole
        self.bench = bench
        self.job_id = whole.submit(bench.base + "/", max_pages=PAGES, timeout_seconds=600)["job_id"]
        self.settled: dict[str, int] = {}

    def disturb(self, act: str) -> None:
        match act:
            case "kill worker":
                self.whole.kill("-m workers")
                asked = self.bench.asked()
                pages = self.whole.pages_so_far(self.job_id)
                self.settled |= {url: asked[url] for url in pages if url not in self.settled}
            case "flush redis":
                flush_redis(self.whole)
            case "restart postgresql":
                (postgres,) = self.whole.children("postgres")
                os.kill(postgres, signal.SIGINT)

    def check_pages(self) -> None:
        pages = self.whole.pages(self.job_id, include_content="false")
        assert sorted(page["url"] for page in pages if page["status"] == "succeeded") == sorted(
            self.bench.urls()["html_pages"]
        )
        assert [page["credits"] for page in pages] == [1] * PAGES

    def check_money(self, job: dict[str, Any]) -> None:
        usage = job["usage"]
        assert (usage["credits_charged"], usage["credits_released"]) == (PAGES, 0)
        assert not usage["settlement_pending"]
        path = "/v1/credits/entries"
        entries = self.whole.get(path, job_id=self.job_id, kind="charge", limit=1000)["items"]
        assert sum(entry["amount"] for entry in entries) == PAGES
        credits = self.whole.get("/v1/credits")
        assert credits["available"] + credits["charged"]["lifetime"] == credits["granted"]
        admin = {"Authorization": f"Bearer {self.whole.keys['admin_key']}"}
        proof = self.whole.http.post("/admin/v1/reconciliation", headers=admin, json={}).json()
        assert proof["ok"], proof

    def check_the_sites_log(self) -> None:
        asked = self.bench.asked()
        repeated = {
            url: (count, asked[url]) for url, count in self.settled.items() if asked[url] != count
        }
        assert repeated == {}, "what was settled was asked for again"
        again = [url for url, count in asked.items() if count > 1 and url.endswith(".html")]
        # A batch that waits, one that is being written, and what was in flight: per dead worker.
        assert len(again) <= 3 * (50 + 50 + 64)


def test_a_crawl_survives_dead_workers_a_flushed_redis_and_a_restarted_postgresql(
    servers_folder: Path, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    moments = sorted(chance.sample(range(50, PAGES - 250), 5))
    acts = ["kill worker", "kill worker", "kill worker", "flush redis", "restart postgresql"]
    chance.shuffle(acts)
    with (
        BenchSite(tmp_path, free_port(), PAGES, "plain").serving() as bench,
        Whole(servers_folder / "crashes", lease_seconds="3") as whole,
    ):
        story = Story(whole, bench)
        for moment, act in zip(moments, acts, strict=True):
            wait_for(whole, story.job_id, moment)
            story.disturb(act)
        job = wait_for(whole, story.job_id, PAGES + 1)

        assert (job["state"], job["completion_reason"]) == ("succeeded", "frontier_exhausted")
        story.check_pages()
        story.check_money(job)
        story.check_the_sites_log()
