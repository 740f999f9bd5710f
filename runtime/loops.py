"""Runs a duty on a clock, through its errors, until the process stops."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog

from runtime.errors import Unavailable

log = structlog.get_logger()
T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
CANCEL_AGAIN_SECONDS = 1.0


async def every(
    seconds: float, duty: Callable[[], Awaitable[object]], *, name: str, stop: asyncio.Event
) -> None:
    """Calls `duty` now and then every so often; a failure is logged, the next turn tries again."""
    while not stop.is_set():
        try:
            await duty()
        except Unavailable as error:
            log.warning("duty_postponed", duty=name, why=str(error))
        except Exception:
            # A duty that meets a fault today must still be tried tomorrow; the log tells.
            log.exception("duty_failed", duty=name)
        await wait(stop, seconds * random.uniform(0.9, 1.1))  # noqa: S311 # jitter is no secret


async def repeat(call: Callable[[], Awaitable[T]], *, seconds: float, what: str) -> T:
    """Makes the same safe-to-repeat call again while it is Unavailable, so long at most."""
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return await call()
        except Unavailable:
            if clock() + pause > until:
                raise
            log.warning("call_repeated", what=what, pause_seconds=round(pause, 2))
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 # jitter is no secret
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


async def end(*tasks: "asyncio.Task[Any]") -> list[BaseException]:
    """Cancels tasks until the last has ended; what they raised, their cancellation aside.

    Again and again, because a client library may take a cancellation for a timeout of its own,
    swallow it and go on: who waits for such a task after one `cancel()` waits for ever.
    """
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=CANCEL_AGAIN_SECONDS)
    raised = [task.exception() for task in tasks if not task.cancelled()]
    return [error for error in raised if error is not None]


async def wait(event: asyncio.Event, seconds: float) -> bool:
    """Waits for an event, so long at most; whether it came."""
    try:
        await asyncio.wait_for(event.wait(), timeout=seconds)
    except TimeoutError:
        return False
    return True
