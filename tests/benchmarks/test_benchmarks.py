"""The benchmark measures the whole system and writes a table that a reader can trust."""

import os
from pathlib import Path

import pytest

from benchmarks import measured, process_cost, report, whole_system
from benchmarks.measured import Measured
from tests.support.processes import free_port
from tests.support.whole import BenchSite

PAGES = 50


def a_run(seconds: float, **changes: object) -> Measured:
    fields = {"pages": 100, "cpu_seconds": 0.5, "peak_mib": 90.0, "foreign_cores": 0.1}
    return Measured(seconds=seconds, **(fields | changes))  # type: ignore[arg-type] # few fields


@pytest.mark.journey
def test_a_crawl_of_the_whole_system_is_measured(tmp_path: Path) -> None:
    with BenchSite(tmp_path, free_port(), PAGES, "plain").serving() as site:
        one = whole_system.measure(f"{site.base}/", PAGES)

    assert one.pages == PAGES
    assert one.seconds > 0
    assert one.cpu_seconds > 0
    assert one.peak_mib > 0
    assert one.others.keys() == {"postgresql", "redis", "ledger", "gateway"}
    assert min(one.others.values()) >= 0
    assert one.start_ms is not None


def test_a_job_that_left_pages_out_is_no_measurement() -> None:
    job = {
        "state": "succeeded",
        "progress": {"succeeded": PAGES - 1},
        "usage": {"credits_charged": PAGES - 1},
    }

    with pytest.raises(RuntimeError, match="49 of 50 pages"):
        whole_system.check(job, PAGES)


def test_the_median_of_each_figure_is_its_own() -> None:
    runs = [
        a_run(1.0, cpu_seconds=3.0, others={"redis": 0.1}, start_ms=5.0),
        a_run(2.0, cpu_seconds=1.0, others={"redis": 0.3}, start_ms=7.0),
        a_run(9.0, cpu_seconds=2.0, others={"redis": 0.2}, start_ms=6.0),
    ]

    one = measured.median(runs)

    assert (one.seconds, one.cpu_seconds, one.others, one.start_ms) == (2.0, 2.0, {"redis": 0.2}, 6)


def test_the_table_compares_us_with_both_peers() -> None:
    medians = {
        report.OURS: a_run(1.0, others={"postgresql": 0.25}),
        report.SCRAPY: a_run(4.0, cpu_seconds=1.0),
        report.BARE: a_run(0.8),
    }

    text = report.table(medians)

    assert "4.00x the pages/s, 0.50x the CPU of the worker, 0.75x the CPU of all" in text
    assert "80% of the pages/s" in text
    assert "postgresql 0.25" in text


def test_the_readme_keeps_everything_but_the_figures() -> None:
    before = f"# Title\n\n{report.BEGIN}\n\nold\n\n{report.END}\n\nMore.\n"

    after = report.put(before, "new")

    assert after == f"# Title\n\n{report.BEGIN}\n\nnew\n\n{report.END}\n\nMore.\n"


def test_the_readme_has_the_markers() -> None:
    text = report.README.read_text(encoding="utf-8")

    assert text.index(report.BEGIN) < text.index(report.END)


def test_a_process_is_measured_with_its_children() -> None:
    assert process_cost.cpu_seconds(os.getpid()) > 0
    assert process_cost.peak_mib(os.getpid()) > 1
    assert process_cost.busy_seconds() > 0
