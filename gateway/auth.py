"""Who a request comes from: API keys, their cache, scopes; the guard of every API router."""

import asyncio
from typing import Any

import structlog
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import Headers
from litestar.handlers import BaseRouteHandler

from accounting import keys
from accounting.keys import Principal
from gateway import exchanges, rate_limits
from gateway.rate_limits import Limiter
from jobs.vocabulary import Scope
from runtime import clock, ids, loops, redis
from runtime.database import Database
from runtime.errors import Refusal
from runtime.redis import Signals

log = structlog.get_logger()

KEYS = "pagetoll:keys"
"""The channel that gateways hear; the text is a key's or a tenant's id, or EVERYTHING."""
EVERYTHING = "*"
ANY_SCOPE = "any"
"""In a handler's opt: whoever has a good key may do this."""
CACHED_KEYS_MAX = 10_000
LISTEN_AGAIN_SECONDS = 1.0
LISTEN_DUTY = "key_hints"


class KeyCache:
    """Principals of keys seen lately, by the hash of the key; what is not good is not kept."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._known: dict[bytes, tuple[Principal, float]] = {}
        self.generation = 0
        """Changes with every hint: what was looked up before one must not be kept after it."""

    def get(self, digest: bytes) -> Principal | None:
        principal, until = self._known.get(digest, (None, 0.0))
        return principal if clock.monotonic() < until else None

    def put(self, digest: bytes, principal: Principal, *, generation: int) -> None:
        if generation != self.generation:
            return
        self._known.pop(digest, None)
        while len(self._known) >= CACHED_KEYS_MAX:
            del self._known[next(iter(self._known))]
        self._known[digest] = principal, clock.monotonic() + self._seconds

    def forget(self, whose: str) -> None:
        """Drops what is known of a key's id, of a tenant's id, or EVERYTHING."""
        self.generation += 1
        self._known = {
            digest: kept
            for digest, kept in self._known.items()
            if whose not in (EVERYTHING, kept[0].key_id, str(kept[0].tenant_id))
        }


class KeyHints:
    """Tells all gateways, this one at once, that keys or tenants have changed."""

    def __init__(self, cache: KeyCache, signals: Signals) -> None:
        self._cache = cache
        self._signals = signals

    async def changed(self, whose: str) -> None:
        self._cache.forget(whose)
        await self._signals.hint(KEYS, whose)

    async def listen(self, stop: asyncio.Event) -> None:
        """Hears the others until `stop`; while Redis is away a key's short life must do."""
        while not stop.is_set():
            try:
                async with self._signals.listen([KEYS]) as hints:
                    self._cache.forget(EVERYTHING)  # what was missed meanwhile is unknown
                    async for _, whose in hints:
                        self._cache.forget(whose)
            except redis.LOST as error:
                log.debug("key_hints_lost", why=str(error))
            await loops.wait(stop, LISTEN_AGAIN_SECONDS)


class Door:
    """Lets in who has a good key, within the plan's rates, with the scope a handler asks for."""

    def __init__(self, system: Database, cache: KeyCache, limiter: Limiter) -> None:
        self._system = system
        self._cache = cache
        self._limiter = limiter

    async def admit(
        self, connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler
    ) -> None:
        """A guard; raises Refusal. A handler says `scope` and `bucket` in its opt."""
        exchange = exchanges.of(connection.scope)
        principal = await self._identify(presented(connection.headers))
        exchange.principal = principal
        structlog.contextvars.bind_contextvars(tenant_id=str(principal.tenant_id))
        bucket: rate_limits.Bucket = handler.opt.get("bucket", "read")
        taken = await self._limiter.take(principal.tenant_id, bucket, principal.plan)
        for name, value in rate_limits.headers(bucket, principal.plan, taken):
            exchange.add_header(name, value)
        if not taken.allowed:
            seconds = taken.retry_after_seconds
            raise Refusal(
                "rate_limited",
                f"The plan's rate of {bucket} requests is used up; wait {seconds} s.",
                retry_after_seconds=seconds,
            )
        if principal.status == "suspended":
            raise Refusal("tenant_suspended", "This tenant is suspended.")
        scope = handler.opt.get("scope")
        if scope is None:
            raise Refusal("forbidden", "No key may do this.")
        if scope != ANY_SCOPE:
            need_scope(principal, scope)

    async def _identify(self, key: str) -> Principal:
        digest = ids.digest(key)
        principal = self._cache.get(digest)
        if principal is None:
            generation = self._cache.generation
            async with self._system.connection() as connection:
                principal = await keys.authenticate(connection, key)
            if principal is None:
                raise unauthenticated()
            self._cache.put(digest, principal, generation=generation)
        return principal


def presented(headers: Headers) -> str:
    """The key of `Authorization: Bearer` or, without that header, of `X-API-Key`."""
    authorization = headers.get("authorization")
    if authorization is None:
        key = headers.get("x-api-key", "")
    else:
        scheme, _, key = authorization.partition(" ")
        key = key.strip() if scheme.lower() == "bearer" else ""
    if not keys.KEY.fullmatch(key):
        raise unauthenticated()
    return key


def unauthenticated() -> Refusal:
    """One answer for every key that is not good: none, malformed, unknown or revoked."""
    return Refusal("unauthenticated", "Send a valid API key as `Authorization: Bearer KEY`.")


def need_scope(principal: Principal, scope: Scope) -> None:
    if scope not in principal.scopes:
        raise Refusal("forbidden", f"This key lacks the scope {scope}.", scope=scope)


def principal_of(request: Request[Any, Any, Any]) -> Principal:
    """Whom the guard let in."""
    principal = exchanges.of(request.scope).principal
    assert principal is not None, "a handler that asks for the principal stands behind the guard"
    return principal
