"""The kinds of failure that a schedule draws from, and what draws and counts them."""

import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from tests.chaos import damage as do
from tests.chaos.damage import Begin
from tests.chaos.town import Town

FROZEN_LEASES = 2
"""How many lease periods a worker sleeps or is cut off: afterwards its jobs are others'."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What begins it, and where it lasts a while, what ends it, given what the beginning gave."""

    kind: str
    name: str
    begin: Begin
    seconds: float = 0.0
    leases: float = 0.0
    end: Callable[[Town, Any], None] | None = None


def a(kind: str, name: str, begin: Begin, **lasting: Any) -> Fault:
    return Fault(kind=kind, name=name, begin=begin, **lasting)


MOMENT = {"seconds": do.MOMENT_SECONDS}
LONG = {"leases": FROZEN_LEASES}
FAULTS = (
    a("gateway", "killed", do.send("gateway", signal.SIGKILL)),
    a("gateway", "its server killed", do.kill_server),
    a("gateway", "ended", do.send("gateway", signal.SIGTERM)),
    a("gateway", "frozen", do.freeze("gateway"), end=do.wake, **MOMENT),
    a("worker", "killed", do.send("workers", signal.SIGKILL)),
    a("worker", "all killed", do.kill_all_workers),
    a("worker", "ended", do.send("workers", signal.SIGTERM)),
    a("worker", "frozen", do.freeze("workers"), end=do.wake, **LONG),
    a("worker", "ledger killed", do.send("accounting", signal.SIGKILL)),
    a("redis", "killed", do.signal_server("redis", signal.SIGKILL)),
    a("redis", "emptied", do.ask_redis("FLUSHALL")),
    a("redis", "full", do.ask_redis(*do.FULL), end=do.empty_again, **MOMENT),
    a("redis", "slow", do.slow(do.to_redis, 0.3), end=do.mend, **MOMENT),
    a("redis", "parted", do.part(do.to_redis), end=do.mend, **MOMENT),
    a("redis", "reset", do.reset(do.to_redis)),
    a("postgresql", "restarted", do.signal_server("postgres", signal.SIGINT)),
    a("postgresql", "crashed", do.signal_server("postgres", signal.SIGQUIT)),
    a("postgresql", "sessions ended", do.ask_postgres(do.END_SESSIONS), end=do.join),
    a("postgresql", "locked", do.ask_postgres(do.HOLD_A_LOCK), end=do.join),
    a("postgresql", "slow", do.slow(do.worker_postgres, 0.05), end=do.mend, **MOMENT),
    a("acknowledgement", "a worker's commit lost", do.lose_answers(do.worker_postgres)),
    a("acknowledgement", "a worker's call lost", do.lose_requests(do.worker_postgres)),
    a("acknowledgement", "a gateway's commit lost", do.lose_answers(do.gateway_postgres)),
    a("acknowledgement", "a gateway's call lost", do.lose_requests(do.gateway_postgres)),
    a("acknowledgement", "a customer's answer lost", do.lose_answers(do.to_gateway)),
    a("acknowledgement", "a customer's call lost", do.lose_requests(do.to_gateway)),
    a("partition", "workers and PostgreSQL", do.part(do.worker_postgres), end=do.mend, **LONG),
    a("partition", "gateways and PostgreSQL", do.part(do.gateway_postgres), end=do.mend, **MOMENT),
    a("partition", "workers and the site", do.part(do.to_site), end=do.mend, **MOMENT),
    a("partition", "the site resets", do.reset(do.to_site)),
    a("clock", "of a gateway", do.skew("gateway")),
    a("clock", "of a worker", do.skew("workers")),
    a("clock", "of the ledger", do.skew("accounting")),
    a("messages", "twenty rings", do.ring_again),
    a("messages", "lost rings", do.forget_rings),
    a("deploy", "rolled", do.roll, end=do.join),
    a("content store", "lost", do.lose_content, end=do.find_content, **MOMENT),
)


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
