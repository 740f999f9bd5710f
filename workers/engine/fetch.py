"""The only HTTP client: guarded connections, and a limit on everything a site may send."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Self

import aiohttp
import msgspec
from yarl import URL

from jobs import urls
from jobs.addresses import AddressPolicy
from jobs.urls import Target, UrlRefused
from workers.engine import address_guard, body, exchange
from workers.engine.address_guard import AddressRefused, GuardedResolver, Lookup
from workers.engine.body import BodyRule, Pace
from workers.engine.decoding import ACCEPT_ENCODING
from workers.engine.exchange import Exchange, status_failure
from workers.engine.outcomes import FetchFailed

__all__ = ["Exchange", "FetchLimits", "Fetcher", "OnHop", "status_failure"]

OnHop = Callable[[Target], Awaitable[None]]

MAX_REDIRECTS = 5
HEADER_LINES = 100
HEADER_BYTES = 64 * 1024
HEADER_LINE_BYTES = 16 * 1024
ASIDE_BYTES = 64 * 1024  # read of a redirect, to keep its connection, and of an error page
DNS_CACHE_SECONDS = 30
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,text/plain;q=0.8,*/*;q=0.5"

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_FIRST_ERROR = 400
_TLS = (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError, ssl.SSLError)


class FetchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Connections at a time, and the speed below which a body is given up."""

    connections: int = 100
    connections_per_host: int = 32
    connect_seconds: float = 10.0
    slow_after_seconds: float = 5.0
    slow_bytes_per_second: int = 1024


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    headers: tuple[tuple[str, str], ...] = ()
    timeout_seconds: float
    rule: BodyRule


class Fetcher:
    """Holds the connections; use with `async with`. All methods raise FetchFailed.

    `policy` is asked for each address that is connected to, whatever was checked before.
    """

    def __init__(
        self,
        policy: AddressPolicy,
        limits: FetchLimits,
        user_agent: str,
        lookup: Lookup | None = None,
    ) -> None:
        self._policy = policy
        self._limits = limits
        self._user_agent = user_agent
        self._lookup = lookup

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(self._policy, self._lookup),
            socket_factory=address_guard.socket_factory(self._policy),
            ttl_dns_cache=DNS_CACHE_SECONDS,
            limit=self._limits.connections,
            limit_per_host=self._limits.connections_per_host,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_seconds),
            auto_decompress=False,
            trust_env=False,
            max_line_size=HEADER_LINE_BYTES,
            max_field_size=HEADER_LINE_BYTES,
            max_headers=HEADER_LINES,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def exchange(
        self,
        target: Target,
        *,
        headers: Iterable[tuple[str, str]] = (),
        timeout_seconds: float,
        limit_bytes: int,
    ) -> Exchange:
        """One request; a redirect is an answer like others, with its `location`.

        `timeout_seconds` is the wall time of all of it, `limit_bytes` the decoded body's.
        """
        rule = BodyRule(limit_bytes=limit_bytes)
        plan = _Plan(headers=tuple(headers), timeout_seconds=timeout_seconds, rule=rule)
        return await self._exchange(target, plan)

    async def follow(
        self,
        target: Target,
        *,
        on_hop: OnHop | None = None,
        headers: Iterable[tuple[str, str]] = (),
        timeout_seconds: float,
        limit_bytes: int,
        max_redirects: int = MAX_REDIRECTS,
    ) -> Exchange:
        """Like `exchange`, with redirects followed within one `timeout_seconds`.

        `on_hop` is awaited with each redirect's target before it is asked for, and may raise
        FetchFailed to stop there; its time is not counted. `headers` stay on the first origin.
        """
        rule = BodyRule(limit_bytes=limit_bytes)
        plan = _Plan(headers=tuple(headers), timeout_seconds=timeout_seconds, rule=rule)
        return await self._follow(target, plan, on_hop, max_redirects)

    async def download(
        self,
        target: Target,
        *,
        on_hop: OnHop | None = None,
        timeout_seconds: float,
        limit_bytes: int,
        truncate: bool = False,
    ) -> Exchange:
        """Like `follow`, for robots.txt and sitemaps: the body is read whatever its type.

        With `truncate` a body over the limit is cut there instead of refused.
        """
        rule = BodyRule(limit_bytes=limit_bytes, cut=truncate, any_type=True)
        plan = _Plan(timeout_seconds=timeout_seconds, rule=rule)
        return await self._follow(target, plan, on_hop, MAX_REDIRECTS)

    async def _follow(
        self, target: Target, plan: _Plan, on_hop: OnHop | None, max_redirects: int
    ) -> Exchange:
        seen = [target.url]
        clock = asyncio.get_running_loop().time
        while True:
            started = clock()
            answer = await self._exchange(target, plan)
            left = plan.timeout_seconds - (clock() - started)
            following = self._redirect(answer)
            if following is None:
                return msgspec.structs.replace(answer, hops=tuple(seen[:-1]))
            if following.url in seen or len(seen) > max_redirects:
                raise _upstream("redirects", "The page redirects too often or in a circle.")
            if on_hop is not None:
                await on_hop(following)
            kept = plan.headers if following.origin == target.origin else ()
            plan = msgspec.structs.replace(plan, headers=kept, timeout_seconds=left)
            seen.append(following.url)
            target = following

    def _redirect(self, answer: Exchange) -> Target | None:
        if not answer.location:
            return None
        try:
            target = urls.resolve_link(answer.url, answer.location, policy=self._policy)
        except UrlRefused as refusal:
            raise FetchFailed("blocked", message=refusal.message) from refusal
        if target is None:
            raise FetchFailed("blocked", message="The page redirects to something not on the web.")
        return target

    async def _exchange(self, target: Target, plan: _Plan) -> Exchange:
        hard_stop = asyncio.get_running_loop().time() + plan.timeout_seconds
        deadline = asyncio.timeout_at(hard_stop)
        headers = {
            "User-Agent": self._user_agent,
            "Accept": ACCEPT,
            **dict(plan.headers),
            "Accept-Encoding": ACCEPT_ENCODING,
        }
        url = URL(target.url, encoded=True)
        try:
            async with (
                deadline,
                self._session.get(url, headers=headers, allow_redirects=False) as response,
            ):
                return await self._answer(target, response, plan.rule, deadline)
        except TimeoutError as error:
            slow = deadline.expired() and (deadline.when() or 0.0) < hard_stop
            raise FetchFailed("timeout", "slow" if slow else None, retryable=True) from error
        except (aiohttp.ClientError, OSError) as error:
            raise _failure_of(error) from error

    async def _answer(
        self,
        target: Target,
        response: aiohttp.ClientResponse,
        rule: BodyRule,
        deadline: asyncio.Timeout,
    ) -> Exchange:
        headers = _headers(response)
        location = headers.get("location") if response.status in _REDIRECTS else None
        is_aside = bool(location) or response.status >= _FIRST_ERROR
        if is_aside:
            limit = min(rule.limit_bytes, ASIDE_BYTES)
            rule = BodyRule(limit_bytes=limit, cut=True, any_type=True)
        content = None
        try:
            chunks = response.content.iter_any()
            content = await body.read(chunks, headers, rule, self._pace(deadline))
        except (FetchFailed, aiohttp.ClientPayloadError):
            # What is wrong with the body of an error page does not hide the error.
            if not is_aside:
                raise
        finally:
            if not response.content.is_eof():
                response.close()  # the rest of this answer must not meet the next request
        return Exchange(
            url=target,
            status=response.status,
            headers=headers,
            body=content or b"",
            location=location,
            body_read=content is not None,
        )

    def _pace(self, deadline: asyncio.Timeout) -> Pace:
        return Pace(
            deadline,
            slow_after_seconds=self._limits.slow_after_seconds,
            bytes_per_second=self._limits.slow_bytes_per_second,
        )


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    if sum(len(name) + len(value) for name, value in response.raw_headers) > HEADER_BYTES:
        raise _upstream("headers", "The headers are longer than 64 KiB.")
    return exchange.fold_headers(response.headers.items())


def _failure_of(error: aiohttp.ClientError | OSError) -> FetchFailed:
    """Our words for what the client raised."""
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(
        error.os_error, AddressRefused
    ):
        return FetchFailed("blocked", message="The address is not a public one.")
    if isinstance(error, _TLS):
        return _upstream("tls", "The site's TLS certificate or handshake is not valid.")
    if isinstance(error, aiohttp.ClientPayloadError):
        return _upstream("truncated", "The body ended too early.", retryable=True)
    if isinstance(error, OSError | aiohttp.ServerDisconnectedError):
        return _upstream("refused", "The site refused or dropped the connection.", retryable=True)
    return _upstream("protocol", "The site's answer is not valid HTTP/1.1.")


def _upstream(detail: str, message: str, *, retryable: bool = False) -> FetchFailed:
    return FetchFailed("upstream_error", detail, message=message, retryable=retryable)
