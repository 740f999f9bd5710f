"""One request and its answer: the id both carry, extra headers, a log line, metrics."""

import asyncio
import re
from typing import Any, cast

import structlog
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from accounting.keys import Principal
from gateway import metrics
from runtime import clock, ids

log = structlog.get_logger()

REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
UNMATCHED = "unmatched"
QUIET_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SCOPE_KEY = "pagetoll.exchange"

SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
)
NO_STORE = (b"cache-control", b"no-store")
FIRST_ERROR_STATUS = 400
BODY_SECONDS = 20.0
"""How long the next part of a body may take; then the caller counts as gone."""


class Exchange:
    """What is known of a request while it is answered; `headers` join whatever is answered."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.principal: Principal | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.status = 500

    def add_header(self, name: str, value: str) -> None:
        self.headers.append((name.lower().encode("ascii"), value.encode("ascii")))

    def answer_headers(self) -> list[tuple[bytes, bytes]]:
        own = [(b"x-request-id", self.request_id.encode("ascii")), *SECURITY_HEADERS]
        if self.principal is not None or self.status >= FIRST_ERROR_STATUS:
            own.append(NO_STORE)
        return own + self.headers


class Exchanges:
    """The outermost ASGI application: what is unrouted or refused is seen here as well."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        exchange = Exchange(_request_id(scope))
        cast("dict[str, Any]", scope)[SCOPE_KEY] = exchange

        if scope["method"] == "HEAD":
            scope["method"] = "GET"
            send = without_body(send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = [*message["headers"], *exchange.answer_headers()]
            await send(message)

        started = clock.monotonic()
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(process="gateway", request_id=exchange.request_id)
        try:
            await self._app(scope, in_time(receive), send_with_headers)
        finally:
            _record(scope, exchange, seconds=clock.monotonic() - started)


def in_time(receive: Receive) -> Receive:
    """A caller whose body does not come counts as gone, and holds no request open for ever."""
    whole = False

    async def receive_in_time() -> Any:  # noqa: ANN401 - the server's own message
        nonlocal whole
        if whole:
            return await receive()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            return {"type": "http.disconnect"}
        whole = not message.get("more_body", False)
        return message

    return receive_in_time


def without_body(send: Send) -> Send:
    """For HEAD: the answer of GET without its content (RFC 9110, 9.3.2)."""
    ended = False

    async def send_head(message: Message) -> None:
        nonlocal ended
        if message["type"] != "http.response.body":
            await send(message)
        elif not ended:
            ended = True
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return send_head


def of(scope: Scope) -> Exchange:
    """The exchange of a request that came through Exchanges."""
    return cast("Exchange", cast("dict[str, Any]", scope)[SCOPE_KEY])


def _request_id(scope: Scope) -> str:
    """The caller's own id where it is harmless, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
            return value.decode("ascii")
    return str(ids.new_id())


def _record(scope: Scope, exchange: Exchange, *, seconds: float) -> None:
    known = cast("dict[str, Any]", scope)
    route = str(known.get("path_template") or UNMATCHED)
    method = known["method"] if known["method"] in METHODS else "OTHER"
    metrics.HTTP_REQUESTS.labels(method, route, str(exchange.status)).inc()
    metrics.HTTP_SECONDS.labels(route).observe(seconds)
    if route not in QUIET_ROUTES:
        log.info(
            "request_finished",
            method=method,
            route=route,
            status=exchange.status,
            duration_ms=round(seconds * 1_000, 1),
        )
