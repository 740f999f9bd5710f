"""One pace per host for all workers, in Redis; each process's own where Redis is away."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import structlog

from runtime import clock, ids, loops, redis
from runtime.redis import Signals
from workers.engine.politeness import HostPace

log = structlog.get_logger()

HOSTS_MAX = 10_000
TOKEN_LENGTH = 16
RENEW_SECONDS = 4.0
COUNTED_MS = 12_000


class SharedGate:
    """A HostGate over Redis."""

    def __init__(self, signals: Signals) -> None:
        self._client = signals.client
        self._script = signals.script(Path(__file__).with_suffix(".lua"))
        self._fallback = LocalGate()
        self._held: dict[str, str] = {}

    @asynccontextmanager
    async def turn(self, host: str, pace: HostPace) -> AsyncGenerator[None]:
        token = ids.random_text(TOKEN_LENGTH)
        try:
            # A turn that is booked counts already while it is waited for: whoever is cut off
            # there must give it back too, or the host is blocked for everybody.
            self._held[token] = host
            await self._take(host, pace, token)
            yield
        finally:
            del self._held[token]
            await self._give_back(host, token)

    async def keep(self, stop: asyncio.Event) -> None:
        """Renews what this worker has in flight, so that only a dead worker's stops counting."""
        while not await loops.wait(stop, RENEW_SECONDS):
            try:
                await self._renew()
            except redis.LOST as error:
                log.warning("turns_not_renewed", error=str(error))

    async def _renew(self) -> None:
        held = dict(self._held)
        if not held:
            return
        seconds, micros = await self._client.time()
        until = seconds * 1000 + micros // 1000 + COUNTED_MS
        async with self._client.pipeline(transaction=False) as pipeline:
            for token, host in held.items():
                pipeline.zadd(f"flight:{{{host}}}", {token: until}, xx=True, gt=True)
                pipeline.pexpire(f"flight:{{{host}}}", COUNTED_MS + 1000, gt=True)
            await pipeline.execute()

    async def wait(self, host: str, pace: HostPace) -> None:
        uncounted = msgspec.structs.replace(pace, concurrency=0)
        await self._take(host, uncounted, "")

    async def _take(self, host: str, pace: HostPace, token: str) -> None:
        while True:
            try:
                granted, wait_ms = await self._script.run(
                    [f"pace:{{{host}}}", f"flight:{{{host}}}"],
                    [
                        round(pace.interval_seconds * 1000),
                        pace.concurrency,
                        token,
                        round(pace.counted_seconds * 1000),
                    ],
                )
            except redis.LOST as error:
                log.warning("pace_kept_locally", host=host, error=str(error))
                await self._fallback.wait(host, pace)
                return
            if wait_ms:
                await asyncio.sleep(wait_ms / 1000)
            if granted:
                return

    async def _give_back(self, host: str, token: str) -> None:
        try:
            await self._client.zrem(f"flight:{{{host}}}", token)
        except redis.LOST as error:
            log.warning("turn_not_given_back", host=host, error=str(error))


class LocalGate:
    """The interval of each host within this process, for as long as Redis is away."""

    def __init__(self) -> None:
        self._free_at: dict[str, float] = {}

    async def wait(self, host: str, pace: HostPace) -> None:
        now = clock.monotonic()
        start = max(now, self._free_at.get(host, 0.0))
        if len(self._free_at) >= HOSTS_MAX:
            self._free_at = {name: free for name, free in self._free_at.items() if free > now}
        self._free_at[host] = start + pace.interval_seconds
        await asyncio.sleep(start - now)
