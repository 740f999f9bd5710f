"""Children end with their parents, and patience with them ends too."""

import os
import signal
import sys
from pathlib import Path

import pytest

from runtime.embedded import processes
from runtime.embedded.binaries import PLAIN_ENVIRONMENT

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


def test_a_child_that_does_not_listen_is_killed() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as output:
        child = processes.spawn(
            [sys.executable, "-c", STUBBORN], environment=PLAIN_ENVIRONMENT, output=output
        )
    with os.fdopen(reader) as said:
        assert said.readline() == "ready\n"

    assert processes.stop(child, seconds=0.01) == -signal.SIGKILL


def test_a_child_that_has_ended_keeps_its_exit_code() -> None:
    child = processes.spawn(
        [sys.executable, "-c", "raise SystemExit(3)"], environment=PLAIN_ENVIRONMENT
    )
    child.wait()

    assert processes.stop(child) == 3


def test_a_lock_is_held_once(tmp_path: Path) -> None:
    with (
        processes.locked(tmp_path / "lock"),
        pytest.raises(BlockingIOError),
        processes.locked(tmp_path / "lock"),
    ):
        pass

    with processes.locked(tmp_path / "lock"):
        pass


def test_a_large_log_is_set_aside(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "server.log"
    with processes.open_log(log) as file:
        file.truncate(processes.LOG_BYTES_MAX + 1)

    processes.open_log(log).close()

    assert log.stat().st_size == 0
    assert log.with_name("server.log.1").stat().st_size == processes.LOG_BYTES_MAX + 1


def test_a_tail_begins_where_it_is_asked_to(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old\nnew\n")

    assert processes.log_tail(log, 4) == "new"
