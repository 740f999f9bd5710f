"""Builds the gateway from its settings: parts, routes, and what runs beside them."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import structlog
from litestar import Litestar, Router
from litestar.connection import ASGIConnection
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp, Guard

from accounting.pricing import Prices
from gateway import auth, health, openapi, problems
from gateway.auth import Door, KeyCache, KeyHints
from gateway.commands import Commands
from gateway.exchanges import Exchanges
from gateway.native import (
    admin,
    admin_jobs,
    budgets,
    catalogue,
    controls,
    corrections,
    credits,
    disputes,
    keys,
    parameters,
    pricing,
    proofs,
    results,
    statements,
    submissions,
    usage,
)
from gateway.native import jobs as native_jobs
from gateway.queries import QueryNames
from gateway.rate_limits import Limiter
from gateway.watchdog import Watchdog
from jobs.addresses import AddressPolicy
from jobs.queue import Bell
from runtime import database, loops, process, settings
from runtime.content import ContentStore
from runtime.database import Database
from runtime.loop_watch import LoopWatch
from runtime.redis import Signals
from runtime.settings import Settings
from runtime.signing import Signer

log = structlog.get_logger()

BODY_BYTES_MAX = 256 * 1024
END_SECONDS = 5.0
"""How long the watchdog may finish its turn when the gateway stops."""


class Parts:
    """What a gateway is made of. Opening it connects to nothing: that happens at first use."""

    def __init__(self, chosen: Settings) -> None:
        self.settings = chosen
        self.database = Database(chosen.database_url, role=database.APP, size=chosen.pool_size)
        self.system = Database(chosen.system_url, role=database.SYSTEM, size=chosen.pool_size)
        self.signals = Signals(chosen.redis_url)
        self.bell = Bell(self.signals, arq=chosen.arq)
        self.content = ContentStore(chosen.content_place)
        self.prices = Prices(self.database)
        cache = KeyCache(seconds=chosen.key_cache_seconds)
        self.key_hints = KeyHints(cache, self.signals)
        self.door = Door(self.system, cache, Limiter(self.signals))
        policy = AddressPolicy.of(settings.split_list(chosen.allow_networks))
        self.commands = Commands(self.database, self.bell, self.prices, policy=policy)
        self.watchdog = Watchdog(self.system, self.bell)

    @asynccontextmanager
    async def running(self, _app: Litestar) -> AsyncGenerator[None]:
        """Opens the pools and runs the watchdog and the listener until the gateway stops."""
        await self.database.open()
        await self.system.open()
        stop = asyncio.Event()
        watching = asyncio.create_task(
            loops.every(
                self.settings.watchdog_seconds,
                self.watchdog.run_once,
                name="watchdog",
                stop=stop,
            )
        )
        listening = asyncio.create_task(self.key_hints.listen(stop))
        try:
            with LoopWatch(self.settings.loop_seconds):
                yield
        finally:
            stop.set()
            await loops.end(listening)
            await asyncio.wait([watching], timeout=END_SECONDS)
            await loops.end(watching)
            await self.commands.close()
            await self.bell.close()
            await self.signals.close()
            await self.system.close()
            await self.database.close()


def create_app(chosen: Settings) -> Litestar:
    """The application; serve it inside Exchanges, which gives each request its id."""
    parts = Parts(chosen)
    native = Router(
        "/v1",
        route_handlers=[
            submissions.ROUTER,
            native_jobs.ROUTER,
            controls.ROUTER,
            results.ROUTER,
            credits.ROUTER,
            keys.ROUTER,
            disputes.ROUTER,
            pricing.ROUTER,
            budgets.ROUTER,
            statements.ROUTER,
            usage.ROUTER,
            proofs.ROUTER,
        ],
        guards=[guard(parts.door)],
    )
    administration = Router(
        "/admin/v1",
        route_handlers=[
            admin.ROUTER,
            admin_jobs.ROUTER,
            catalogue.ROUTER,
            corrections.ROUTER,
            disputes.ADMIN_ROUTER,
            proofs.ADMIN_ROUTER,
        ],
        guards=[guard(parts.door)],
    )
    return Litestar(
        route_handlers=[
            native,
            administration,
            health.healthz,
            health.readyz,
            health.read_metrics,
            openapi.read_style,
        ],
        dependencies=dependencies(parts),
        exception_handlers={Exception: problems.render, HTTPException: problems.render},
        lifespan=[parts.running],
        openapi_config=openapi.config(),
        request_max_body_size=BODY_BYTES_MAX,
        logging_config=None,
        debug=False,
    )


def guard(door: Door) -> Guard:
    """The door's guard as a plain function: the framework copies whatever else it is given."""
    names = QueryNames()

    async def admit(
        connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler
    ) -> None:
        await door.admit(connection, handler)
        names.check(connection)

    return admit


def dependencies(parts: Parts) -> dict[str, Provide]:
    """What handlers may ask for, by name."""
    return {
        "window": Provide(parameters.window, sync_to_thread=False),
        "principal": Provide(auth.principal_of, sync_to_thread=False),
        "database": _given(parts.database),
        "system": _given(parts.system),
        "signals": _given(parts.signals),
        "content": _given(parts.content),
        "prices": _given(parts.prices),
        "key_hints": _given(parts.key_hints),
        "commands": _given(parts.commands),
        "signer": _given(Signer(parts.settings.secret_key)),
        "adjustment_limit": _given(parts.settings.adjustment_limit),
    }


def _given(part: Any) -> Provide:  # noqa: ANN401 - any part
    give: Callable[[], Any] = lambda: part  # noqa: E731
    return Provide(give, sync_to_thread=False)


def served() -> ASGIApp:
    """What the server's child process serves; it loads the settings itself."""
    process.die_with_parent()
    chosen = settings.load()
    process.prepare(chosen, "gateway")
    log.info("process_started")
    return Exchanges(create_app(chosen))
