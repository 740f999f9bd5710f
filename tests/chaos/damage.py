"""Ways to hurt a running town: who dies, what tears, what comes twice."""

import asyncio
import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg

from jobs import queue
from runtime import redis
from runtime.embedded.postgres import DATABASE, SUPERUSER
from runtime.redis import Signals
from tests.chaos.town import Kept, Town
from tests.support.wires import Wire

MOMENT_SECONDS = 1.0
SKEWS_SECONDS = (-600, -30, 30, 600)
RINGS = 20
FULL = ("CONFIG", "SET", "maxmemory", "1")
END_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'pagetoll_%'"
)
HOLD_A_LOCK = "BEGIN; LOCK TABLE hold IN EXCLUSIVE MODE; SELECT pg_sleep(1); COMMIT"

Begin = Callable[[Town, random.Random], Any]


def send(module: str, number: signal.Signals) -> Begin:
    """A signal to one process of a module."""

    def begin(town: Town, chance: random.Random) -> Kept:
        process = chance.choice(town.processes[module])
        process.send(number)
        return process

    return begin


def freeze(module: str) -> Begin:
    """A machine that swaps: the process runs again later, and knows nothing of it."""

    def begin(town: Town, chance: random.Random) -> Kept:
        process = chance.choice(town.processes[module])
        process.send_to_all(signal.SIGSTOP)
        return process

    return begin


def wake(_: Town, process: Kept) -> None:
    process.send_to_all(signal.SIGCONT)


def kill_server(town: Town, chance: random.Random) -> None:
    """As the kernel does when memory is short: the child that serves is the one that grew."""
    chance.choice(town.processes["gateway"]).send_to_children(signal.SIGKILL)


def kill_all_workers(town: Town, _: random.Random) -> None:
    for process in town.processes["workers"]:
        process.send(signal.SIGKILL)


def roll(town: Town, _: random.Random) -> threading.Thread:
    """Ends every process as a deploy does, one after the other, each once the last is back."""
    rolling = threading.Thread(target=lambda: [process.restart() for process in town.all])
    rolling.start()
    return rolling


def join(_: Town, thread: threading.Thread) -> None:
    thread.join()


def signal_server(which: str, number: signal.Signals) -> Begin:
    def begin(town: Town, _: random.Random) -> None:
        pid = getattr(town, which).pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    return begin


def skew(module: str) -> Begin:
    def begin(town: Town, chance: random.Random) -> None:
        chance.choice(town.processes[module]).skew(chance.choice(SKEWS_SECONDS))

    return begin


def part(choose: Callable[[Town], Wire]) -> Begin:
    """Nothing gets through, and nobody is told."""

    def begin(town: Town, _: random.Random) -> Wire:
        choose(town).timeout()
        return choose(town)

    return begin


def slow(choose: Callable[[Town], Wire], seconds: float) -> Begin:
    def begin(town: Town, _: random.Random) -> Wire:
        choose(town).latency_seconds = seconds
        return choose(town)

    return begin


def mend(_: Town, wire: Wire) -> None:
    wire.mend()


def reset(choose: Callable[[Town], Wire]) -> Begin:
    def begin(town: Town, _: random.Random) -> None:
        choose(town).reset_peer()

    return begin


def lose_answers(choose: Callable[[Town], Wire]) -> Begin:
    """What was asked is done, and nobody hears of it."""

    def begin(town: Town, chance: random.Random) -> None:
        choose(town).losing_answers = chance.randint(1, 3)

    return begin


def lose_requests(choose: Callable[[Town], Wire]) -> Begin:
    def begin(town: Town, chance: random.Random) -> None:
        choose(town).losing_requests = chance.randint(1, 3)

    return begin


def ask_redis(*words: str) -> Begin:
    def begin(town: Town, _: random.Random) -> None:
        asyncio.run(_ask_redis(town, words))

    return begin


def empty_again(town: Town, _: object) -> None:
    asyncio.run(_ask_redis(town, (*FULL[:-1], "0")))


async def _ask_redis(town: Town, words: tuple[str, ...]) -> None:
    signals = Signals(town.redis.url)
    try:
        await signals.client.execute_command(*words)
    except redis.LOST:
        return
    finally:
        await signals.close()


def ring_again(town: Town, _: random.Random) -> None:
    """Every job that is not final is rung for again, very often."""
    asyncio.run(_ring_again(town))


async def _ring_again(town: Town) -> None:
    signals = Signals(town.redis.url)
    bell = queue.Bell(signals, arq=True)
    try:
        for job_id in town.jobs[-RINGS:]:
            for _ in range(RINGS):
                await bell.ring(job_id)
    finally:
        await bell.close()
        await signals.close()


def forget_rings(town: Town, _: random.Random) -> None:
    asyncio.run(_ask_redis(town, ("DEL", queue.ARQ_QUEUE)))


def ask_postgres(text: str) -> Begin:
    """Asks in a thread: the answer may take its time, or never come."""

    def begin(town: Town, _: random.Random) -> threading.Thread:
        url = town.postgres.url(SUPERUSER, DATABASE)
        asking = threading.Thread(target=lambda: asyncio.run(_ask_postgres(url, text)))
        asking.start()
        return asking

    return begin


async def _ask_postgres(url: str, text: str) -> None:
    with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(text)
        finally:
            await connection.close(timeout=MOMENT_SECONDS)


def lose_content(town: Town, _: random.Random) -> Path:
    """A file stands where the store's folder was, so that nothing can be written or read."""
    aside = town.content.with_suffix(".aside")
    if not aside.exists():
        town.content.rename(aside)
        town.content.write_bytes(b"")
    return aside


def find_content(town: Town, aside: Path) -> None:
    if aside.exists():
        town.content.unlink()
        aside.rename(town.content)


def worker_postgres(town: Town) -> Wire:
    return town.worker_postgres


def gateway_postgres(town: Town) -> Wire:
    return town.gateway_postgres


def to_redis(town: Town) -> Wire:
    return town.to_redis


def to_site(town: Town) -> Wire:
    return town.to_site


def to_gateway(town: Town) -> Wire:
    return town.gateways[0]
