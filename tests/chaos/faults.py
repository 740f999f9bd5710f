"""What is done to a running town, by kinds of failure: who dies, what tears, what comes twice."""

import asyncio
import contextlib
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from jobs import queue
from runtime import redis
from runtime.embedded.postgres import DATABASE, SUPERUSER
from runtime.redis import Signals
from tests.chaos.town import Kept, Town
from tests.support.wires import Wire

MOMENT_SECONDS = 1.0
FROZEN_LEASES = 2
"""How many lease periods a worker sleeps or is cut off: afterwards its jobs are others'."""
SKEWS_SECONDS = (-600, -30, 30, 600)
RINGS = 20
END_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'pagetoll_%'"
)
HOLD_A_LOCK = "BEGIN; LOCK TABLE hold IN EXCLUSIVE MODE; SELECT pg_sleep(1); COMMIT"

Begin = Callable[[Town, random.Random], Any]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What begins it, and where it lasts a while, what ends it, given what the beginning gave."""

    kind: str
    name: str
    begin: Begin
    seconds: float = 0.0
    leases: float = 0.0
    end: Callable[[Town, Any], None] | None = None


class Injector:
    """Draws faults by a seeded chance and counts them; what lasts a while ends by itself."""

    def __init__(self, town: Town, chance: random.Random) -> None:
        self._town = town
        self._chance = chance
        self._ends: list[threading.Timer] = []
        self.injected: Counter[str] = Counter()

    def inject(self) -> None:
        """One fault of one kind; what it hits may just be starting, and then it hits nothing."""
        kind = self._chance.choice(sorted({fault.kind for fault in FAULTS}))
        fault = self._chance.choice([fault for fault in FAULTS if fault.kind == kind])
        begun = fault.begin(self._town, self._chance)
        self.injected[f"{kind}: {fault.name}"] += 1
        if fault.end is not None:
            seconds = fault.seconds + fault.leases * self._town.lease_seconds
            timer = threading.Timer(seconds, fault.end, [self._town, begun])
            timer.start()
            self._ends.append(timer)

    def close(self) -> None:
        """Waits for the ends of all faults; wires are as new, clocks go right."""
        for timer in self._ends:
            timer.join()
        for wire in self._town.wires.all:
            wire.mend()
        for process in self._town.all:
            process.skew(0)


def send(module: str, number: signal.Signals) -> Begin:
    """A signal to one process of a module."""

    def begin(town: Town, chance: random.Random) -> Kept:
        process = chance.choice(town.processes[module])
        process.send(number)
        return process

    return begin


def wake(_: Town, process: Kept) -> None:
    process.send(signal.SIGCONT)


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
    asyncio.run(_ask_redis(town, ("CONFIG", "SET", "maxmemory", "0")))


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


def a(kind: str, name: str, begin: Begin, **lasting: Any) -> Fault:
    return Fault(kind=kind, name=name, begin=begin, **lasting)


def _worker_postgres(town: Town) -> Wire:
    return town.worker_postgres


def _gateway_postgres(town: Town) -> Wire:
    return town.gateway_postgres


def _to_redis(town: Town) -> Wire:
    return town.to_redis


def _to_site(town: Town) -> Wire:
    return town.to_site


def _to_gateway(town: Town) -> Wire:
    return town.gateways[0]


MOMENT = {"seconds": MOMENT_SECONDS}
LONG = {"leases": FROZEN_LEASES}
FAULTS = (
    a("gateway", "killed", send("gateway", signal.SIGKILL)),
    a("gateway", "ended", send("gateway", signal.SIGTERM)),
    a("gateway", "frozen", send("gateway", signal.SIGSTOP), end=wake, **MOMENT),
    a("worker", "killed", send("workers", signal.SIGKILL)),
    a("worker", "all killed", kill_all_workers),
    a("worker", "ended", send("workers", signal.SIGTERM)),
    a("worker", "frozen", send("workers", signal.SIGSTOP), end=wake, **LONG),
    a("worker", "ledger killed", send("accounting", signal.SIGKILL)),
    a("redis", "killed", signal_server("redis", signal.SIGKILL)),
    a("redis", "emptied", ask_redis("FLUSHALL")),
    a("redis", "full", ask_redis("CONFIG", "SET", "maxmemory", "1"), end=empty_again, **MOMENT),
    a("redis", "slow", slow(_to_redis, 0.3), end=mend, **MOMENT),
    a("redis", "parted", part(_to_redis), end=mend, **MOMENT),
    a("redis", "reset", reset(_to_redis)),
    a("postgresql", "restarted", signal_server("postgres", signal.SIGINT)),
    a("postgresql", "crashed", signal_server("postgres", signal.SIGQUIT)),
    a("postgresql", "sessions ended", ask_postgres(END_SESSIONS), end=join),
    a("postgresql", "locked", ask_postgres(HOLD_A_LOCK), end=join),
    a("postgresql", "slow", slow(_worker_postgres, 0.05), end=mend, **MOMENT),
    a("acknowledgement", "a worker's commit lost", lose_answers(_worker_postgres)),
    a("acknowledgement", "a worker's call lost", lose_requests(_worker_postgres)),
    a("acknowledgement", "a gateway's commit lost", lose_answers(_gateway_postgres)),
    a("acknowledgement", "a gateway's call lost", lose_requests(_gateway_postgres)),
    a("acknowledgement", "a customer's answer lost", lose_answers(_to_gateway)),
    a("acknowledgement", "a customer's call lost", lose_requests(_to_gateway)),
    a("partition", "workers and PostgreSQL", part(_worker_postgres), end=mend, **LONG),
    a("partition", "gateways and PostgreSQL", part(_gateway_postgres), end=mend, **MOMENT),
    a("partition", "workers and the site", part(_to_site), end=mend, **MOMENT),
    a("partition", "the site resets", reset(_to_site)),
    a("clock", "of a gateway", skew("gateway")),
    a("clock", "of a worker", skew("workers")),
    a("clock", "of the ledger", skew("accounting")),
    a("messages", "twenty rings", ring_again),
    a("messages", "lost rings", forget_rings),
    a("deploy", "rolled", roll, end=join),
    a("content store", "lost", lose_content, end=find_content, **MOMENT),
)
