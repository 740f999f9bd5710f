"""Child processes that end with their parent, and a patient way to stop them."""

import contextlib
import ctypes
import fcntl
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TypedDict

PR_SET_PDEATHSIG = 1
"""Linux's prctl option: the signal that a process gets when its parent ends."""

LOG_BYTES_MAX = 10_000_000
LOG_TAIL_BYTES = 2_000


class ServerFailed(Exception):
    """A server could not be found, made or started; the message says why."""


def die_with_parent(signum: int) -> Callable[[], None]:
    """What a child runs before its exec, so that it gets `signum` when its parent is gone.

    The kernel watches the thread that forked: start children from the main thread.
    Other systems than Linux have no such signal; there this does nothing.
    """
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def arrange() -> None:
        if prctl is None:
            return
        prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the kernel was told
            os.kill(os.getpid(), signal.SIGKILL)

    return arrange


def spawn(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    death_signal: int = signal.SIGTERM,
    output: IO[bytes] | None = None,
    account: pwd.struct_passwd | None = None,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a child in a session of its own: a terminal's Ctrl-C reaches only its parent."""
    return subprocess.Popen(  # noqa: S603 # the commands are ours
        [str(part) for part in command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        cwd=folder,
        start_new_session=True,
        # one prctl between fork and exec, looked up before the fork
        preexec_fn=die_with_parent(death_signal),  # noqa: PLW1509
        **identity(account),
    )


class Child:
    """A process that is watched and stopped; what it is says how it is started."""

    stop_signal: int = signal.SIGTERM

    def __init__(self, name: str, *, stop_seconds: float) -> None:
        self.name = name
        self.stop_seconds = stop_seconds
        self.process: subprocess.Popen[bytes] | None = None
        self.held = contextlib.ExitStack()

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    @property
    def exit_code(self) -> int | None:
        """How the last process ended, negative for a signal; None while it runs."""
        return self.process.poll() if self.process else None

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Asks the process to end and waits, killing it in the end; lets go of what it held."""
        if self.process is not None:
            stop(self.process, signum=self.stop_signal, seconds=self.stop_seconds)
        self.held.close()

    def take_lock(self, path: Path) -> None:
        """Holds a file's lock until `stop`. Raises ServerFailed when another process does."""
        self.held.close()
        try:
            self.held.enter_context(locked(path))
        except BlockingIOError as error:
            raise ServerFailed(f"Another process runs {self.name} in {path.parent}.") from error


class Identity(TypedDict, total=False):
    """The arguments of subprocess that say who a child runs as."""

    user: int
    group: int
    extra_groups: list[int]


def identity(account: pwd.struct_passwd | None) -> Identity:
    if account is None:
        return {}
    return Identity(user=account.pw_uid, group=account.pw_gid, extra_groups=[])


def stop(
    process: subprocess.Popen[bytes], *, signum: int = signal.SIGTERM, seconds: float = 10.0
) -> int:
    """Asks a child to end, waits, then kills it and what it started; its exit code."""
    if process.poll() is None:
        process.send_signal(signum)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a file's lock; raises BlockingIOError at once when another process has it.

    The lock goes with the process however it ends: no stale lock can be left.
    """
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def open_log(path: Path) -> IO[bytes]:
    """Opens a log for appending; a log that has grown large is kept as one older file."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
        path.replace(path.with_name(path.name + ".1"))
    return path.open("ab")


def log_tail(path: Path, start: int = 0) -> str:
    """The end of what was written to a log since byte `start`."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(start, end - LOG_TAIL_BYTES))
        return file.read().decode(errors="replace").strip()
