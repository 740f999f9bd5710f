"""What every process does first and last: settings, log, signals, metrics."""

import asyncio
import ctypes
import signal
import sys
from collections.abc import Awaitable, Callable

import prometheus_client
import structlog
import uvloop

from runtime import logging, settings
from runtime.loop_watch import LoopWatch
from runtime.settings import Settings, SettingsError

log = structlog.get_logger()

BAD_SETTINGS = 2
PR_SET_PDEATHSIG = 1


def run(name: str, main: Callable[[Settings, asyncio.Event], Awaitable[None]]) -> int:
    """Runs a process's main coroutine until SIGTERM or SIGINT sets its event; the exit code."""
    try:
        loaded = settings.load()
        settings.need_servers(loaded)
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201 # the log is not set up yet
        return BAD_SETTINGS
    prepare(loaded, name)
    uvloop.run(_until_stopped(loaded, main))
    log.info("process_stopped")
    return 0


def prepare(loaded: Settings, name: str) -> None:
    """Sets up the log, and is loud about what weakens the guard."""
    logging.configure(loaded, process=name)
    if loaded.networks:
        log.warning("guard_opened", allow_networks=loaded.allow_networks)


def serve_metrics(host: str, port: int) -> None:
    """/metrics for a process that serves no API; port 0 switches it off."""
    if port:
        prometheus_client.start_http_server(port, addr=host)


def die_with_parent() -> None:
    """On Linux, ends this process when the one that started it ends (PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


async def _until_stopped(
    loaded: Settings, main: Callable[[Settings, asyncio.Event], Awaitable[None]]
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    log.info("process_started")
    with LoopWatch(loaded.loop_seconds):
        await main(loaded, stop)
