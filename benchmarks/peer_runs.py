"""Runs the programs we compare ourselves with, Scrapy in an environment of its own."""

import hashlib
import resource
import subprocess
import sys
from pathlib import Path

import msgspec

import bootstrap
from benchmarks import process_cost
from benchmarks.measured import Measured
from runtime import clock

FOLDER = Path(__file__).resolve().parent
PEERS = FOLDER / "peers"
LOCK = FOLDER / "requirements.lock"
VENV = bootstrap.ROOT / ".venv-bench"
STAMP = VENV / "lock.sha256"
ENOUGH_SECONDS = 1_800.0


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """The last line that a peer prints: of its crawl alone, without its start."""

    pages: int
    seconds: float
    cpu_seconds: float
    peak_kib: int


def scrapy_python() -> Path:
    """The Python that has Scrapy; makes its environment where the lock asks for another one."""
    wanted = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    has = STAMP.read_text(encoding="ascii") if STAMP.exists() else ""
    if has != wanted or not bootstrap.is_usable(VENV):
        bootstrap.say(f"Preparing {VENV.name} ...")
        bootstrap.make_venv(VENV)
        bootstrap.install(VENV, str(LOCK.relative_to(bootstrap.ROOT)))
        STAMP.write_text(wanted, encoding="ascii")
    return VENV / "bin" / "python"


def scrapy(url: str, pages: int, out: Path) -> Measured:
    return _measure(scrapy_python(), "scrapy_peer.py", url, pages, out)


def bare_loop(url: str, pages: int, out: Path) -> Measured:
    return _measure(Path(sys.executable), "loop_peer.py", url, pages, out)


def _measure(python: Path, script: str, url: str, pages: int, out: Path) -> Measured:
    own, busy, began = _children_seconds(), process_cost.busy_seconds(), clock.monotonic()
    done = subprocess.run(
        [python, PEERS / script, url, out],
        check=True,
        stdout=subprocess.PIPE,
        timeout=ENOUGH_SECONDS,
    )
    took = clock.monotonic() - began
    used = process_cost.busy_seconds() - busy - (_children_seconds() - own)
    said = msgspec.json.decode(done.stdout.splitlines()[-1], type=Said)
    if said.pages != pages:
        raise RuntimeError(f"{script} crawled {said.pages} of {pages} pages")
    return Measured(
        pages=pages,
        seconds=said.seconds,
        cpu_seconds=said.cpu_seconds,
        peak_mib=said.peak_kib / 1024,
        foreign_cores=used / took,
    )


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
