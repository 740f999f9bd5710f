"""Watches a job until it has ended and its bill is settled, with a bar on a terminal."""

import contextlib
import signal
import time
from types import FrameType
from typing import Self

import httpx
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from cli import calls
from cli.bills import Job
from cli.calls import Api, CallFailed
from runtime import clock

POLL_SECONDS_MAX = 1.0
"""Whatever Retry-After says: somebody is looking."""
PATIENCE_SECONDS = 60.0
"""How long the API may not answer, or a final job's bill stay open, before the command ends."""


class Interrupts:
    """Use with `with`, in the main thread: the first Ctrl-C is noted, the second one interrupts."""

    def __init__(self) -> None:
        self.asked = False
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._open.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, self._note))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _note(self, _signum: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


class Bar:
    """The counters and the credits of a job, on stderr."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[counters]}"),
            TextColumn("{task.fields[credits]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, job: Job) -> None:
        if self._task is None:
            self._task = self._progress.add_task("", counters="", credits="")
        at, usage = job.progress, job.usage
        self._progress.update(
            self._task,
            description=job.state,
            completed=at.done,
            total=max(at.admitted, 1),
            counters=f"{at.done}/{at.admitted} pages, {at.failed} failed,",
            credits=f"{usage.credits_charged}/{usage.credits_reserved} credits",
        )


def until_settled(api: Api, response: httpx.Response, interrupts: Interrupts) -> Job:
    """Follows the job that was answered; where asked to, cancels it and follows it to its end.

    Raises CallFailed when the API is away, or the bill of an ended job open, for too long.
    """
    cancelled = False
    with Bar() as bar:
        while True:
            job = calls.decode(response, Job)
            bar.show(job)
            if job.is_settled:
                return job
            if job.is_final:
                return settled(api, job)
            if interrupts.asked and not cancelled:
                cancelled = True
                response = patiently(api, "DELETE", job.job_id)
                continue
            time.sleep(pause_of(response))
            response = patiently(api, "GET", job.job_id)


def settled(api: Api, job: Job) -> Job:
    """The job once its bill is settled: after a crash that takes the ledger process some time."""
    deadline = clock.monotonic() + PATIENCE_SECONDS
    while not job.is_settled:
        if clock.monotonic() > deadline:
            raise CallFailed(f"Job {job.job_id} has ended; its bill is not settled yet.")
        time.sleep(POLL_SECONDS_MAX)
        job = calls.decode(patiently(api, "GET", job.job_id), Job)
    return job


def patiently(api: Api, method: str, job_id: str) -> httpx.Response:
    """A call that is safe to repeat, made again while the API is away or asks to wait."""
    deadline = clock.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return api.ask(method, f"/v1/jobs/{job_id}")
        except CallFailed as error:
            if not error.passing:
                raise
            if clock.monotonic() > deadline:
                raise CallFailed(f"{error} Job {job_id} goes on.", code=error.code) from error
        time.sleep(POLL_SECONDS_MAX)


def pause_of(response: httpx.Response) -> float:
    """Seconds until the next poll."""
    try:
        return min(max(float(response.headers["Retry-After"]), 0.0), POLL_SECONDS_MAX)
    except (KeyError, ValueError):
        return POLL_SECONDS_MAX
