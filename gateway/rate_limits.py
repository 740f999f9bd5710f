"""Requests a minute by tenant: GCRA in Redis, and a local one while Redis is away."""

import math
from pathlib import Path
from typing import Literal
from uuid import UUID

import msgspec
import structlog

from accounting.tenants import Plan
from gateway import metrics
from runtime import clock, redis
from runtime.redis import Signals

log = structlog.get_logger()

Bucket = Literal["submit", "status", "read"]

WINDOW_SECONDS = 60
MICRO = 1_000_000
AWAY_SECONDS = 1.0
"""How long Redis is left alone after it was lost, so that no request waits for it."""
COMPLAINT_SECONDS = 60.0
LOCAL_BUCKETS_MAX = 30_000


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A decision; times in microseconds."""

    allowed: bool
    remaining: int
    wait: int
    until_full: int

    @property
    def retry_after_seconds(self) -> int:
        return max(1, math.ceil(self.wait / MICRO))


class Limiter:
    """Counts in Redis over all gateways; without Redis each gateway counts for itself."""

    def __init__(self, signals: Signals) -> None:
        self._script = signals.script(Path(__file__).with_suffix(".lua"))
        self._local = LocalBuckets()
        self._away_until = -math.inf
        self._complain_after = -math.inf

    async def take(self, tenant_id: UUID, bucket: Bucket, plan: Plan) -> Taken:
        """One request out of a bucket, or the wait until there is room for one."""
        interval = WINDOW_SECONDS * MICRO // quota(plan, bucket)
        window = interval * quota(plan, bucket)
        key = f"pagetoll:rate:{tenant_id}:{bucket}"
        if clock.monotonic() >= self._away_until:
            try:
                allowed, remaining, wait, full = await self._script.run([key], [interval, window])
            except redis.LOST as error:
                self._note_loss(error)
            else:
                return Taken(allowed=bool(allowed), remaining=remaining, wait=wait, until_full=full)
        metrics.LIMITER_LOCAL.inc()
        return self._local.take(key, interval=interval, window=window)

    def _note_loss(self, error: Exception) -> None:
        now = clock.monotonic()
        self._away_until = now + AWAY_SECONDS
        if now >= self._complain_after:
            self._complain_after = now + COMPLAINT_SECONDS
            log.warning("rate_limits_local", why=str(error))


class LocalBuckets:
    """The script's arithmetic in this process, on a clock of its own."""

    def __init__(self) -> None:
        self._full_at: dict[str, int] = {}

    def take(self, key: str, *, interval: int, window: int) -> Taken:
        now = int(clock.monotonic() * MICRO)
        before = max(self._full_at.pop(key, now), now)
        after = before + interval
        if after - now > window:
            self._full_at[key] = before
            wait = after - now - window
            return Taken(allowed=False, remaining=0, wait=wait, until_full=before - now)
        while len(self._full_at) >= LOCAL_BUCKETS_MAX:
            del self._full_at[next(iter(self._full_at))]
        self._full_at[key] = after
        remaining = (window - (after - now)) // interval
        return Taken(allowed=True, remaining=remaining, wait=0, until_full=after - now)


def quota(plan: Plan, bucket: Bucket) -> int:
    """Requests a minute that a plan gives to a bucket."""
    match bucket:
        case "submit":
            return plan.submits_per_minute
        case "status":
            return plan.status_per_minute
        case "read":
            return plan.reads_per_minute


def headers(bucket: Bucket, plan: Plan, taken: Taken) -> list[tuple[str, str]]:
    """RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-11."""
    seconds = math.ceil(taken.until_full / MICRO)
    return [
        ("RateLimit-Policy", f'"{bucket}";q={quota(plan, bucket)};w={WINDOW_SECONDS}'),
        ("RateLimit", f'"{bucket}";r={taken.remaining};t={seconds}'),
    ]
