"""A thread that tells where an event loop is held up, and ends a process that stays so."""

import asyncio
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Self

import structlog

log = structlog.get_logger()

TICK_SECONDS = 0.5
TOLD_TICKS = 2
STUCK_EXIT = 70
"""EX_SOFTWARE of sysexits.h."""


def end_process(code: int) -> None:
    """At once: what would run at a usual exit waits for the thread that is held up."""
    os._exit(code)


def _tell(say: Callable[..., None], event: str, **fields: object) -> None:
    """From a thread of its own: a log that nobody reads must not hold the watch up as well."""
    telling = threading.Thread(target=say, args=(event,), kwargs=fields, daemon=True)
    telling.start()
    telling.join(TICK_SECONDS)


class LoopWatch:
    """Asks the loop of the thread that enters it for an answer, again and again.

    What has no answer for a second is logged (`loop_blocked`) with the place where the loop stands;
    after `patience_seconds` the process ends, so that whoever started it starts it anew: its jobs
    go to other workers either way, but its slots would be lost. Time is counted in turns that
    the thread was awake for: a process that was frozen as a whole is not stuck. Code that keeps
    the interpreter's lock for itself cannot be seen from here.
    """

    def __init__(
        self, patience_seconds: float, *, end: Callable[[int], None] = end_process
    ) -> None:
        self._patience_ticks = max(TOLD_TICKS + 1, round(patience_seconds / TICK_SECONDS))
        self._end = end
        self._left = threading.Event()
        self._answered = threading.Event()
        self._unanswered = 0

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="loop-watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._thread.join()

    def _watch(self) -> None:
        self._ask()
        while not self._left.wait(TICK_SECONDS):
            self.look()

    def _ask(self) -> None:
        self._answered.clear()
        try:
            self._loop.call_soon_threadsafe(self._answered.set)
        except RuntimeError:  # the loop was closed before this was left
            self._left.set()

    def look(self) -> None:
        """One turn: whether the loop has answered what it was asked in the turn before."""
        if self._answered.is_set():
            if self._unanswered >= TOLD_TICKS:
                _tell(log.warning, "loop_goes_on", blocked_seconds=self._unanswered * TICK_SECONDS)
            self._unanswered = 0
            self._ask()
            return
        self._unanswered += 1
        if self._unanswered == TOLD_TICKS:
            _tell(log.warning, "loop_blocked", where=self._where())
        elif self._unanswered >= self._patience_ticks:
            _tell(log.error, "loop_stuck", where=self._where())
            self._end(STUCK_EXIT)

    def _where(self) -> str:
        frame = sys._current_frames().get(self._watched)  # noqa: SLF001 # the documented way
        return "".join(traceback.format_stack(frame)) if frame else "its thread has ended"
