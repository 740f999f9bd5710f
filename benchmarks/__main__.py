"""Measures the system against its peers in one run: python -m benchmarks."""

import argparse
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import measured, peer_runs, report, whole_system
from benchmarks.measured import Measured
from tests.support.processes import free_port
from tests.support.whole import BenchSite

QUICK_PAGES = 300
Contender = Callable[[], Measured]


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = _arguments(arguments)
    with whole_system.folder() as place:
        site = BenchSite(place, free_port(), chosen.pages, "plain")
        with site.serving():
            contenders = _contenders(f"{site.base}/", chosen.pages, place / "out.jsonl")
            rounds = _measure(contenders, chosen.runs, warm_up=not chosen.quick)
    medians = {name: measured.median(runs) for name, runs in rounds.items()}
    version = _scrapy_version()
    facts = report.facts(pages=chosen.pages, runs=chosen.runs, scrapy_version=version)
    figures = f"{facts}\n\n{report.table(medians)}"
    print(figures)
    if chosen.write:
        report.write(figures)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--pages", type=int, default=2_000, help="pages of the site (2000)")
    parser.add_argument("--runs", type=int, default=3, help="counted runs of each (3)")
    parser.add_argument("--quick", action="store_true", help="300 pages, once, no warm-up")
    parser.add_argument("--write", action="store_true", help="put the table into the README")
    chosen = parser.parse_args(arguments)
    if chosen.quick:
        chosen.pages, chosen.runs = QUICK_PAGES, 1
    return chosen


def _contenders(url: str, pages: int, out: Path) -> dict[str, Contender]:
    peer_runs.scrapy_python()
    return {
        report.OURS: lambda: whole_system.measure(url, pages),
        report.SCRAPY: lambda: peer_runs.scrapy(url, pages, out),
        report.BARE: lambda: peer_runs.bare_loop(url, pages, out),
    }


def _measure(
    contenders: dict[str, Contender], runs: int, *, warm_up: bool
) -> dict[str, list[Measured]]:
    """One after another in each round, so that a noisy minute meets them all."""
    rounds: dict[str, list[Measured]] = {name: [] for name in contenders}
    for number in range(0 if warm_up else 1, runs + 1):
        for name, run in contenders.items():
            one = run()
            print(
                f"round {number}: {name}: {one.pages_a_second:.0f} pages/s,"
                f" {one.cpu_per_1000:.2f} CPU s /1,000",
                flush=True,
            )
            if number:
                rounds[name].append(one)
    return rounds


def _scrapy_version() -> str:
    code = "import importlib.metadata as m; print(m.version('scrapy'))"
    python = peer_runs.scrapy_python()
    return subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
