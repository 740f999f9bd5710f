"""Measures one job of the whole system, started as a newcomer starts it, in a fresh folder."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import process_cost
from benchmarks.measured import Measured
from runtime import clock
from tests.support import whole
from tests.support.whole import Whole

OPTIONS: dict[str, Any] = {
    "formats": ["links", "markdown", "metadata"],
    "robots": "ignore",
    "sitemap": "skip",
    "timeout_seconds": 3_600,
}
"""As for the peers, robots.txt is not read; the rest is what a customer gets unasked."""
WORKER = "worker"
NAMES = {" -m workers": WORKER, " -m gateway": "gateway", " -m accounting": "ledger"}
SERVERS = {"postgres": "postgresql", "valkey": "redis", "redis": "redis"}
"""What a command line holds, and what the table calls the process; ours are looked for first."""
POLL_SECONDS = 0.1
ENOUGH_SECONDS = 1_800.0


def measure(url: str, pages: int) -> Measured:
    """One crawl of a site of so many pages; the worker is new, and nothing is cached."""
    with folder() as place, Whole(place / "data") as system:
        pids = processes(system)
        before, busy, began = _used(pids), process_cost.busy_seconds(), clock.monotonic()
        job = finished(system, system.submit(url, max_pages=pages, **OPTIONS)["job_id"])
        took, used = clock.monotonic() - began, _used(pids)
        spent = {name: round(used[name] - before[name], 2) for name in pids}
        foreign = process_cost.busy_seconds() - busy - sum(spent.values())
        peak = process_cost.peak_mib(pids[WORKER])
    check(job, pages)
    created, started, ended = (
        datetime.fromisoformat(job[name]) for name in ("created_at", "started_at", "finished_at")
    )
    return Measured(
        pages=pages,
        seconds=(ended - started).total_seconds(),
        cpu_seconds=spent.pop(WORKER),
        peak_mib=peak,
        foreign_cores=foreign / took,
        others=spent,
        start_ms=(started - created).total_seconds() * 1000,
    )


@contextmanager
def folder() -> Iterator[Path]:
    """A short path that PostgreSQL's own account can enter."""
    made = Path(tempfile.mkdtemp(prefix="pagetoll-bench-"))
    made.chmod(0o711)
    try:
        yield made
    finally:
        shutil.rmtree(made)


def processes(system: Whole) -> dict[str, int]:
    """The ids of what `pagetoll up` runs, by name."""
    found = {name_of(whole.command_of(pid)): pid for pid in system.children("")}
    missing = {*NAMES.values(), *SERVERS.values()} - found.keys()
    if missing:
        raise RuntimeError(f"these are not running: {', '.join(sorted(missing))}")
    return found


def name_of(command: str) -> str:
    for words, name in (NAMES | SERVERS).items():
        if words in command:
            return name
    raise RuntimeError(f"an unknown process: {command}")


def finished(system: Whole, job_id: str) -> dict[str, Any]:
    deadline = clock.monotonic() + ENOUGH_SECONDS
    while clock.monotonic() < deadline:
        job: dict[str, Any] = system.get(f"/v1/jobs/{job_id}")
        if job["finished_at"] is not None:
            return job
        time.sleep(POLL_SECONDS)
    raise RuntimeError(f"the job did not end:\n{system.log[-3_000:]}")


def check(job: dict[str, Any], pages: int) -> None:
    """A figure counts only where every page was crawled and paid for."""
    succeeded, charged = job["progress"]["succeeded"], job["usage"]["credits_charged"]
    if (job["state"], succeeded, charged) != ("succeeded", pages, pages):
        raise RuntimeError(f"{job['state']}: {succeeded} of {pages} pages, {charged} credits")


def _used(pids: dict[str, int]) -> dict[str, float]:
    return {name: process_cost.cpu_seconds(pid) for name, pid in pids.items()}
