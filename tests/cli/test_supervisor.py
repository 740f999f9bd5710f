"""A dead child is started again, and a signal to the supervisor stops them all."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli import supervisor as supervision
from cli.supervisor import Process, Supervisor, Watch
from runtime.embedded.binaries import PLAIN_ENVIRONMENT
from runtime.embedded.processes import ServerFailed

FOREVER = "import time; time.sleep(600)"
PARENT = """
import os, sys
from pathlib import Path
from cli.supervisor import Process, Supervisor
from runtime.embedded.binaries import PLAIN_ENVIRONMENT
child = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
with Supervisor() as supervisor:
    for name in ("one", "two"):
        command = [sys.executable, "-c", child]
        supervisor.start(
            Process(name, command, environment=PLAIN_ENVIRONMENT, stop_seconds=30)
        )
    supervisor.run()
print("stopped", flush=True)
"""


def a_process(code: str, name: str = "child") -> Process:
    return Process(
        name, [sys.executable, "-c", code], environment=PLAIN_ENVIRONMENT, stop_seconds=30
    )


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def children_of(parent: subprocess.Popen[str]) -> list[int]:
    """Descriptors that become readable when the two children end."""
    assert parent.stdout is not None
    return [os.pidfd_open(int(parent.stdout.readline())) for _ in range(2)]


def wait_for_ends(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        assert select.select([descriptor], [], [], 60)[0]
        os.close(descriptor)


def test_a_dead_child_is_started_again_and_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    with Supervisor() as supervisor:
        child = a_process(FOREVER, "clerk")
        supervisor.start(child)
        first = child.process
        assert first is not None

        first.kill()
        while child.process is first or not child.is_alive():
            supervisor.tend()

    assert "clerk was killed by SIGKILL; starting it again in 0.5 s." in capsys.readouterr().err


def test_a_child_that_keeps_ending_waits_longer_each_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [1_000.0]
    monkeypatch.setattr(supervision.clock, "monotonic", lambda: now[0])
    child = a_process("raise SystemExit(7)", "clerk")
    child.start()
    watch = Watch(child)

    waits = []
    for _ in range(7):
        assert child.process is not None
        child.process.wait()
        watch.look()
        assert watch.due_at is not None
        waits.append(watch.due_at - now[0])
        now[0] = watch.due_at
        watch.look()
    child.stop()

    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert capsys.readouterr().err.count("clerk ended with exit code 7") == 7


def test_a_child_that_lived_long_is_started_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr(supervision.clock, "monotonic", lambda: now[0])
    child = a_process("raise SystemExit(7)")
    child.start()
    watch = Watch(child)
    watch.backoff_seconds = 8.0
    assert child.process is not None
    child.process.wait()

    now[0] += supervision.STEADY_SECONDS
    watch.look()

    assert watch.due_at == now[0] + supervision.BACKOFF_SECONDS


def test_a_start_that_fails_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [1_000.0]
    monkeypatch.setattr(supervision.clock, "monotonic", lambda: now[0])
    child = Process("clerk", ["/no/such/program"], environment={}, stop_seconds=1)
    watch = Watch(child)
    watch.look()

    now[0] += supervision.BACKOFF_SECONDS
    watch.look()

    assert watch.due_at == now[0] + 2 * supervision.BACKOFF_SECONDS
    assert "clerk could not be started" in capsys.readouterr().err


def test_leaving_stops_the_services_last_one_first() -> None:
    order: list[str] = []

    class Clerk(Process):
        def stop(self) -> None:
            super().stop()
            order.append(self.name)

    with Supervisor() as supervisor:
        for name in ("postgresql", "ledger", "gateway"):
            supervisor.start(
                Clerk(name, [sys.executable, "-c", FOREVER], environment={}, stop_seconds=30)
            )

    assert order == ["gateway", "ledger", "postgresql"]


def test_a_first_start_that_fails_is_raised_and_leaves_the_rest_to_be_stopped() -> None:
    first = a_process(FOREVER)

    class Broken(Process):
        def start(self) -> None:
            raise ServerFailed("no program")

    with Supervisor() as supervisor:
        supervisor.start(first)
        with pytest.raises(ServerFailed):
            supervisor.start(Broken("broken", [], environment={}, stop_seconds=1))

    assert first.exit_code == -signal.SIGTERM


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    with Supervisor():
        assert signal.getsignal(signal.SIGTERM) != before[1]

    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_all_children(parent: subprocess.Popen[str], signum: signal.Signals) -> None:
    children = children_of(parent)

    parent.send_signal(signum)

    wait_for_ends(children)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "stopped\n"
    assert parent.wait() == 0


def test_a_killed_supervisor_takes_its_children_with_it(parent: subprocess.Popen[str]) -> None:
    children = children_of(parent)

    parent.kill()

    wait_for_ends(children)


def test_an_end_is_told_in_words(tmp_path: Path) -> None:
    child = a_process("raise SystemExit(3)")
    child.start()
    assert child.process is not None
    child.process.wait()

    assert supervision.end_of(child) == "ended with exit code 3"
