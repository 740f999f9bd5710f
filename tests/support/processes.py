"""Starts processes of ours with given settings, keeps what they log, and ends them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

from runtime import clock, settings
from runtime.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
LOOK_SECONDS = 0.02
START_SECONDS = 60.0
STOP_SECONDS = 30.0


class OwnProcess:
    """`python -m <module>` as a user starts it, with its log in a file."""

    def __init__(self, module: str, chosen: Settings, *, log: Path) -> None:
        self.module = module
        self.settings = chosen
        self.log_file = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, f"{self.module} was not started"
        return self._process

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def start(self, *, variables: Mapping[str, str] | None = None) -> None:
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self.module],
                cwd=ROOT,
                env={
                    **settings.inherited_environment(),
                    **settings.environment(self.settings),
                    **(variables or {}),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def wait_until_answered(self, path: str = "/healthz") -> None:
        """Returns at the first answer of the server on the settings' port, whatever it says."""
        deadline = clock.monotonic() + START_SECONDS
        while clock.monotonic() < deadline:
            assert self.process.poll() is None, f"{self.module} ended:\n{self.log}"
            try:
                httpx.get(f"http://127.0.0.1:{self.settings.port}{path}", trust_env=False)
            except httpx.TransportError:
                time.sleep(LOOK_SECONDS)
            else:
                return
        raise AssertionError(f"{self.module} did not answer:\n{self.log}")

    def logged(self, text: str) -> list[str]:
        """The log's lines with this text, once there is one; an answer may overtake its line."""
        deadline = clock.monotonic() + START_SECONDS
        while text not in self.log:
            assert clock.monotonic() < deadline, f"{text!r} was not logged:\n{self.log}"
            time.sleep(LOOK_SECONDS)
        return [line for line in self.log.splitlines() if text in line]

    def stop(self) -> int:
        """SIGTERM, then the exit code; a process that stays is killed and fails the test."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.module} did not stop:\n{self.log}") from None

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def children(pid: int) -> list[int]:
    """Pids of the processes that it has started itself; none where it has ended."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [int(child) for child in listed.read_text(encoding="ascii").split()]
    return []
