"""What is done to a running system: processes killed, frozen or ended, servers emptied."""

import asyncio
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from runtime import redis
from runtime.redis import Signals
from tests.support.whole import Whole

FROZEN_LEASES = 2
"""How many lease periods a frozen worker sleeps: when it wakes its jobs are others'."""


class Faults:
    """Faults of one system, drawn by a seeded chance and counted by name."""

    def __init__(self, whole: Whole, chance: random.Random, *, lease_seconds: float) -> None:
        self._whole = whole
        self._chance = chance
        self._lease_seconds = lease_seconds
        self._waking: list[threading.Timer] = []
        self.injected: Counter[str] = Counter()
        self._known: dict[str, Callable[[], None]] = {
            "kill worker": lambda: self._send("-m workers", signal.SIGKILL),
            "end worker": lambda: self._send("-m workers", signal.SIGTERM),
            "freeze worker": self._freeze_worker,
            "kill gateway": lambda: self._send("-m gateway", signal.SIGKILL),
            "end gateway": lambda: self._send("-m gateway", signal.SIGTERM),
            "kill ledger": lambda: self._send("-m accounting", signal.SIGKILL),
            "flush redis": self._flush_redis,
            "kill redis": lambda: self._send("valkey", signal.SIGKILL),
            "restart postgresql": lambda: self._send("postgres", signal.SIGINT),
            "crash postgresql": lambda: self._send("postgres", signal.SIGQUIT),
        }

    def inject(self) -> str:
        """One fault; what it hits may just be starting again, and then it hits nothing."""
        name = self._chance.choice(sorted(self._known))
        self._known[name]()
        self.injected[name] += 1
        return name

    def close(self) -> None:
        """Lets everybody who sleeps wake up."""
        for timer in self._waking:
            timer.join()

    def _send(self, words: str, number: signal.Signals) -> None:
        for pid in self._whole.children(words):
            os.kill(pid, number)

    def _freeze_worker(self) -> None:
        for pid in self._whole.children("-m workers"):
            os.kill(pid, signal.SIGSTOP)
            timer = threading.Timer(FROZEN_LEASES * self._lease_seconds, _wake, [pid])
            timer.start()
            self._waking.append(timer)

    def _flush_redis(self) -> None:
        sockets = list(self._whole.folder.rglob("*valkey*.sock"))
        if sockets:
            asyncio.run(_flush(sockets[0]))


async def _flush(socket: Path) -> None:
    signals = Signals(f"unix://{socket}")
    try:
        await signals.client.flushall()
    except redis.LOST:
        return
    finally:
        await signals.close()


def _wake(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return
