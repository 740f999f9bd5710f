"""Liveness, readiness and metrics: /healthz, /readyz, /metrics."""

import asyncio
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
ANSWER_SECONDS = 1.5
"""A probe must hear in time that a server hangs."""
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
    by_server = await asyncio.gather(_missing_of(database), _missing_of_redis(signals))
    missing = [name for names in by_server for name in names]
    if not missing:
        return Response(Health(status="ready"))
    refusal = Refusal("backend_unavailable", f"Not ready: {', '.join(missing)}.", missing=missing)
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return problems.answer(request, refusal, headers=headers)


@get("/metrics", include_in_schema=False, sync_to_thread=False)
def read_metrics() -> Response[bytes]:
    """Counters and gauges of this process in Prometheus' text format."""
    return Response(prometheus_client.generate_latest(), media_type=METRICS_TYPE)


async def _missing_of(database: Database) -> list[str]:
    """What of PostgreSQL is missing; without an answer nothing is known of its schema."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS), database.connection() as connection:
            return [] if await schema.is_current(connection) else ["migrations"]
    except (Unavailable, TimeoutError):
        return ["postgresql", "migrations"]
    except Exception:
        # A wrong name, password or grant is no lost connection, and as little ready.
        log.exception("database_not_ready")
        return ["postgresql", "migrations"]


async def _missing_of_redis(signals: Signals) -> list[str]:
    try:
        await signals.client.ping()
    except redis.LOST:
        return ["redis"]
    return []
