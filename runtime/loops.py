"""Runs a duty on a clock, through its errors, until the process stops."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

from runtime.errors import Unavailable

log = structlog.get_logger()


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


async def wait(event: asyncio.Event, seconds: float) -> bool:
    """Waits for an event, so long at most; whether it came."""
    try:
        await asyncio.wait_for(event.wait(), timeout=seconds)
    except TimeoutError:
        return False
    return True
