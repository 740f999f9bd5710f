"""Runs seeded schedules of faults: python -m tests.chaos --seeds 20 --first 1 --faults 6."""

import argparse
import logging
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import structlog

from runtime import clock
from tests.chaos import story
from tests.chaos.load import Violation
from tests.chaos.town import Town

LEASE_SECONDS = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """1 at the first violation, whose seed is told: alone, it draws the same schedule again."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many schedules (5)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--faults", type=int, default=6, help="of each schedule (6)")
    parser.add_argument("--keep", type=Path, help="where logs of a violation are kept")
    chosen = parser.parse_args(arguments)
    # so that an ended run ends what it has started
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # a ring is lost whenever the store is hurt, which is no news here
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    folder = Path(tempfile.mkdtemp(prefix="pagetoll-chaos-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        return _run(folder, chosen)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(folder: Path, chosen: argparse.Namespace) -> int:
    total = Total()
    with Town(folder, lease_seconds=LEASE_SECONDS) as town:
        try:
            for seed in range(chosen.first, chosen.first + chosen.seeds):
                began = clock.monotonic()
                report = story.tell(town, seed, faults=chosen.faults)
                took = clock.monotonic() - began
                print(f"seed {seed}: {report.jobs} {report.pages} pages, {took:.1f} s", flush=True)
                total.add(report)
        except Violation as violation:
            print(f"seed {seed}: {violation}", flush=True)
            if chosen.keep:
                shutil.copytree(folder / "logs", chosen.keep / f"seed-{seed}")
            return 1
        finally:
            # an ended run tells what it has seen, too
            print(total.text(), flush=True)
    return 0


class Total:
    """What all schedules did together."""

    def __init__(self) -> None:
        self._schedules = self._pages = 0
        self._faults: Counter[str] = Counter()
        self._jobs: Counter[str] = Counter()

    def add(self, report: story.Report) -> None:
        self._schedules += 1
        self._pages += report.pages
        self._faults.update(report.faults)
        self._jobs.update(report.jobs)

    def text(self) -> str:
        rows = [f"| {name} | {times} |" for name, times in sorted(self._faults.items())]
        return "\n".join(
            [
                f"{self._schedules} schedules, {self._faults.total()} faults",
                f"{self._jobs.total()} jobs {dict(self._jobs)}, {self._pages} pages charged",
                "| fault | times |",
                "| --- | ---: |",
                *rows,
            ]
        )


if __name__ == "__main__":
    sys.exit(main())
