"""How many requests to a host at a time and how far apart; what a site asks for counts."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import msgspec

from jobs.urls import Target
from runtime import clock
from workers.engine.robots import RobotsCache

CRAWL_DELAY_SECONDS_MAX = 60.0


class HostPace(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from one request's start to the next, and requests at a time; 0 s is no wait.

    A request stops counting after `counted_seconds` unless its worker is alive to renew it.
    """

    interval_seconds: float
    concurrency: int
    counted_seconds: float = 12.0


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A pace that all jobs of one customer keep together, under a key that is no host's."""

    key: str
    pace: HostPace


def share_of(customer: str, *, pages_per_second: int) -> Share | None:
    """None where the customer's plan sets no limit (0)."""
    if not pages_per_second:
        return None
    pace = HostPace(interval_seconds=1 / pages_per_second, concurrency=0)
    return Share(key=f"tenant {customer}", pace=pace)


class HostGate(Protocol):
    """Keeps one pace per host for everybody who fetches."""

    def turn(self, host: str, pace: HostPace) -> AbstractAsyncContextManager[None]:
        """Waits for the host's turn, and counts the request while the context is open."""
        ...

    async def wait(self, host: str, pace: HostPace) -> None:
        """Waits for the host's turn inside a request that is counted elsewhere."""
        ...

    async def keep(self, stop: asyncio.Event) -> None:
        """Keeps requests that are in flight counted, until `stop`."""
        ...


class Pacing:
    """The pace of one job at every host: the slowest of plan, robots.txt and its own delay."""

    def __init__(
        self,
        gate: HostGate,
        plan: HostPace,
        robots: RobotsCache | None,
        *,
        delay_seconds: float,
        is_unpaced: Callable[[Target], bool],
        share: "Share | None" = None,
    ) -> None:
        """`is_unpaced` names hosts of the operator's own that nothing holds back.

        `share` is what the customer's jobs may fetch together, at whatever hosts.
        """
        self._share = share
        self._gate = gate
        self._plan = plan
        self._robots = robots
        self._delay_seconds = delay_seconds
        self._is_unpaced = is_unpaced
        self._own_turn: dict[str, float] = {}
        self._waiting: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    def close(self) -> None:
        """No request begins any more: who waits for a turn is cancelled, and who comes for one."""
        self._is_closed = True
        for task in self._waiting:
            task.cancel()

    @asynccontextmanager
    async def turn(self, target: Target) -> AsyncGenerator[None]:
        if self._is_closed:
            raise asyncio.CancelledError
        async with AsyncExitStack() as held:
            task = asyncio.current_task()
            assert task is not None, "a turn is taken in a task"
            self._waiting.add(task)
            try:
                await self._take_turn(target, held)
            finally:
                self._waiting.discard(task)
            yield

    async def _take_turn(self, target: Target, held: AsyncExitStack) -> None:
        if self._share is not None:
            await self._gate.wait(self._share.key, self._share.pace)
        await self._keep_own_delay(host_key(target))
        if not self._is_unpaced(target):
            turn = self._gate.turn(host_key(target), await self._pace(target))
            await held.enter_async_context(turn)

    async def wait(self, target: Target) -> None:
        await self._keep_own_delay(host_key(target))
        if not self._is_unpaced(target):
            await self._gate.wait(host_key(target), await self._pace(target))

    async def _keep_own_delay(self, host: str) -> None:
        """The delay this customer asked for slows this job alone, never others at the host."""
        if not self._delay_seconds:
            return
        now = clock.monotonic()
        start = max(now, self._own_turn.get(host, now))
        self._own_turn[host] = start + self._delay_seconds
        await asyncio.sleep(start - now)

    async def _pace(self, target: Target) -> HostPace:
        asked = None
        if self._robots is not None:
            asked = (await self._robots.rules_for(target)).crawl_delay
        return effective_pace(self._plan, crawl_delay_seconds=asked)


def effective_pace(plan: HostPace, *, crawl_delay_seconds: float | None) -> HostPace:
    """The slower of plan and robots.txt; a crawl-delay counts up to a minute."""
    asked = min(crawl_delay_seconds or 0.0, CRAWL_DELAY_SECONDS_MAX)
    return msgspec.structs.replace(plan, interval_seconds=max(plan.interval_seconds, asked))


def host_key(target: Target) -> str:
    """What shares a pace: a host's port; the scheme does not make it another machine."""
    return f"{target.host}:{target.port}"
