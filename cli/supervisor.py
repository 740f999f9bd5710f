"""Keeps child processes running: starts a dead one again, and stops all in order."""

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Protocol, Self

from runtime import clock
from runtime.embedded import processes
from runtime.embedded.processes import Child, ServerFailed

BACKOFF_SECONDS = 0.5
BACKOFF_SECONDS_MAX = 10.0
STEADY_SECONDS = 30.0
"""A child that lived this long begins with the shortest back-off again."""
LOOK_SECONDS = 1.0
"""How long a look at the children may wait; the end of one is noticed at once."""


class Service(Protocol):
    """What is watched; runtime.embedded's servers and `Process` are such."""

    name: str

    @property
    def exit_code(self) -> int | None: ...
    def is_alive(self) -> bool: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


class Process(Child):
    """A command that shares our terminal, stops at SIGTERM and ends when we do."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        stop_seconds: float,
    ) -> None:
        super().__init__(name, stop_seconds=stop_seconds)
        self.command = command
        self.environment = environment

    def start(self) -> None:
        self.process = processes.spawn(self.command, environment=self.environment)


class Watch:
    """One service's recent past: since when it lives, or when it is started again."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.started_at = clock.monotonic()
        self.backoff_seconds = BACKOFF_SECONDS
        self.due_at: float | None = None

    def look(self) -> None:
        if self.due_at is not None:
            if clock.monotonic() >= self.due_at:
                self._start_again()
        elif not self.service.is_alive():
            if clock.monotonic() - self.started_at >= STEADY_SECONDS:
                self.backoff_seconds = BACKOFF_SECONDS
            self._postpone(end_of(self.service))

    def _start_again(self) -> None:
        try:
            self.service.start()
        except (ServerFailed, OSError, subprocess.SubprocessError) as error:
            self._postpone(f"could not be started: {error}")
        else:
            self.started_at = clock.monotonic()
            self.due_at = None

    def _postpone(self, what_happened: str) -> None:
        wait = self.backoff_seconds
        complain(f"{self.service.name} {what_happened}; starting it again in {wait:g} s.")
        self.due_at = clock.monotonic() + wait
        self.backoff_seconds = min(wait * 2, BACKOFF_SECONDS_MAX)


class Supervisor:
    """Use with `with`, in the main thread: leaving stops the services, the last one first.

    While it is open, SIGINT and SIGTERM only set `stop_asked`.
    """

    def __init__(self) -> None:
        self.stop_asked = False
        self._watches: list[Watch] = []
        self._open = contextlib.ExitStack()
        self._bell: int = -1

    def __enter__(self) -> Self:
        self._bell, writer = os.pipe()
        for descriptor in (self._bell, writer):
            self._open.callback(os.close, descriptor)
            os.set_blocking(descriptor, False)
        self._open.callback(
            signal.set_wakeup_fd, signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        )
        for signum, handler in (
            (signal.SIGINT, self._ask_to_stop),
            (signal.SIGTERM, self._ask_to_stop),
            (signal.SIGCHLD, notice),
        ):
            self._open.callback(signal.signal, signum, signal.signal(signum, handler))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def start(self, service: Service) -> None:
        """Starts a service and watches it from now on. Raises ServerFailed or OSError."""
        self._open.callback(service.stop)
        service.start()
        self._watches.append(Watch(service))

    def dead(self) -> list[Service]:
        return [watch.service for watch in self._watches if not watch.service.is_alive()]

    def wait(self, seconds: float = LOOK_SECONDS) -> None:
        """Waits until a signal arrives or a child ends, at most so long."""
        if not self.stop_asked:
            select.select([self._bell], [], [], max(0.0, seconds))
            with contextlib.suppress(BlockingIOError):
                os.read(self._bell, select.PIPE_BUF)

    def tend(self, seconds: float = LOOK_SECONDS) -> None:
        """Waits like `wait`, at most until a restart is due, then looks after every service."""
        now = clock.monotonic()
        due = [watch.due_at - now for watch in self._watches if watch.due_at is not None]
        self.wait(min([seconds, *due]))
        for watch in self._watches:
            if not self.stop_asked:
                watch.look()

    def run(self) -> None:
        """Looks after the services until SIGINT or SIGTERM."""
        while not self.stop_asked:
            self.tend()

    def _ask_to_stop(self, _signum: int, _frame: FrameType | None) -> None:
        self.stop_asked = True


def notice(_signum: int, _frame: FrameType | None) -> None:
    """A handler must be set for a signal to ring the wake-up descriptor."""


def end_of(service: Service) -> str:
    """How a service ended, in words."""
    code = service.exit_code
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def complain(sentence: str) -> None:
    print(f"pagetoll: {sentence}", file=sys.stderr, flush=True)
