"""How many requests to a host at a time and how far apart; what a site asks for counts."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import msgspec

from jobs.urls import Target
from workers.engine.robots import RobotsCache

CRAWL_DELAY_SECONDS_MAX = 60.0


class HostPace(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from one request's start to the next, and requests at a time; 0 s is no wait.

    A request whose worker died stops counting after `counted_seconds`.
    """

    interval_seconds: float
    concurrency: int
    counted_seconds: float = 35.0


class HostGate(Protocol):
    """Keeps one pace per host for everybody who fetches."""

    def turn(self, host: str, pace: HostPace) -> AbstractAsyncContextManager[None]:
        """Waits for the host's turn, and counts the request while the context is open."""
        ...

    async def wait(self, host: str, pace: HostPace) -> None:
        """Waits for the host's turn inside a request that is counted elsewhere."""
        ...


class Pacing:
    """The pace of one job at every host: the slowest of plan, request and robots.txt."""

    def __init__(
        self,
        gate: HostGate,
        plan: HostPace,
        robots: RobotsCache | None,
        *,
        delay_seconds: float,
        is_unpaced: Callable[[Target], bool],
    ) -> None:
        """`is_unpaced` names hosts of the operator's own that nothing holds back."""
        self._gate = gate
        self._plan = plan
        self._robots = robots
        self._delay_seconds = delay_seconds
        self._is_unpaced = is_unpaced
        self.clamped_hosts: set[str] = set()

    @asynccontextmanager
    async def turn(self, target: Target) -> AsyncGenerator[None]:
        if self._is_unpaced(target):
            yield
            return
        async with self._gate.turn(host_key(target), await self._pace(target)):
            yield

    async def wait(self, target: Target) -> None:
        if not self._is_unpaced(target):
            await self._gate.wait(host_key(target), await self._pace(target))

    async def _pace(self, target: Target) -> HostPace:
        asked = None
        if self._robots is not None:
            asked = (await self._robots.rules_for(target)).crawl_delay
        if asked is not None and asked > CRAWL_DELAY_SECONDS_MAX:
            self.clamped_hosts.add(target.host)
        return effective_pace(
            self._plan, delay_seconds=self._delay_seconds, crawl_delay_seconds=asked
        )


def effective_pace(
    plan: HostPace, *, delay_seconds: float, crawl_delay_seconds: float | None
) -> HostPace:
    """The slowest of the three; a crawl-delay counts up to a minute."""
    asked = min(crawl_delay_seconds or 0.0, CRAWL_DELAY_SECONDS_MAX)
    interval = max(plan.interval_seconds, delay_seconds, asked)
    return msgspec.structs.replace(plan, interval_seconds=interval)


def host_key(target: Target) -> str:
    """What shares a pace: a host's port; the scheme does not make it another machine."""
    return f"{target.host}:{target.port}"
