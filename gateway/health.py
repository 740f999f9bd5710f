"""Liveness, readiness and metrics: /healthz, /readyz, /metrics."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import prometheus_client
import structlog
from litestar import Request, Response, get

from gateway import problems
from jobs import schema
from runtime import redis
from runtime.database import Database
from runtime.errors import Refusal, Unavailable
from runtime.redis import Signals

log = structlog.get_logger()

RETRY_AFTER_SECONDS = 2
METRICS_TYPE = prometheus_client.CONTENT_TYPE_LATEST.removesuffix("; charset=utf-8")
"""The framework says the charset itself."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The process serves."""

    status: str = "ok"


@get("/healthz", include_in_schema=True, tags=["Health"], security=[])
async def healthz() -> Health:
    """Whether the process lives; nothing behind it is asked."""
    return Health()


@get("/readyz", tags=["Health"], security=[])
async def readyz(
    request: Request[Any, Any, Any], database: Database, signals: Signals
) -> Response[Any]:
    """Whether PostgreSQL answers at the right schema, and Redis; 503 names what is missing."""
    checks: dict[str, Callable[[], Awaitable[bool]]] = {
        "postgresql": lambda: _answers(database),
        "migrations": lambda: _is_migrated(database),
        "redis": lambda: _hears(signals),
    }
    missing = [name for name, check in checks.items() if not await check()]
    if not missing:
        return Response(Health(status="ready"))
    refusal = Refusal("backend_unavailable", f"Not ready: {', '.join(missing)}.", missing=missing)
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return problems.answer(request, refusal, headers=headers)


@get("/metrics", include_in_schema=False, sync_to_thread=False)
def read_metrics() -> Response[bytes]:
    """Counters and gauges of this process in Prometheus' text format."""
    return Response(prometheus_client.generate_latest(), media_type=METRICS_TYPE)


async def _answers(database: Database) -> bool:
    try:
        async with database.connection() as connection:
            return bool(await connection.fetchval("SELECT true"))
    except Unavailable:
        return False


async def _is_migrated(database: Database) -> bool:
    try:
        async with database.connection() as connection:
            return await schema.is_current(connection)
    except Unavailable:
        return False


async def _hears(signals: Signals) -> bool:
    try:
        return bool(await signals.client.ping())
    except redis.LOST:
        return False
