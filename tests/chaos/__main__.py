"""Runs seeded schedules of faults: python -m tests.chaos --seeds 20 --first 1 --faults 12."""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.chaos import story
from tests.chaos.load import Violation


def main(arguments: Sequence[str] | None = None) -> int:
    """1 at the first violation, whose seed is told: the same seed draws the same schedule."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many schedules (5)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--faults", type=int, default=10, help="of each schedule (10)")
    chosen = parser.parse_args(arguments)
    faults: Counter[str] = Counter()
    jobs: Counter[str] = Counter()
    pages = 0
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        with tempfile.TemporaryDirectory(prefix="pagetoll-chaos-") as folder:
            Path(folder).chmod(0o755)
            try:
                report = story.tell(seed, Path(folder), faults=chosen.faults)
            except Violation as violation:
                print(f"seed {seed}: {violation}", flush=True)
                return 1
        print(f"seed {seed}: {report.faults} {report.jobs} {report.pages} pages", flush=True)
        faults.update(report.faults)
        jobs.update(report.jobs)
        pages += report.pages
    print(f"{sum(faults.values())} faults {dict(faults)}, jobs {dict(jobs)}, {pages} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
