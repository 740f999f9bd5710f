"""The Redis client, hints that something changed, and scripts; all of it may be lost."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import redis.asyncio as aioredis
import structlog
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Lost
from redis.exceptions import RedisError
from typing_extensions import override

log = structlog.get_logger()

TIMEOUT_SECONDS = 0.5
LOST = (RedisError, OSError, TimeoutError)
"""What every user of this module must expect and live with."""


class _Honest(aioredis.connection.AbstractConnection):
    """Calls a lost connection lost: uvloop raises RuntimeError for a write after the loss."""

    @override
    async def send_packed_command(
        self, command: bytes | str | Iterable[bytes], check_health: bool = True
    ) -> None:
        try:
            await super().send_packed_command(command, check_health)
        except RuntimeError as error:
            raise Lost(f"the connection was closed: {error}") from error


class _Plain(_Honest, aioredis.Connection):
    pass


class _Secure(_Honest, aioredis.SSLConnection):
    pass


class _Local(_Honest, aioredis.UnixDomainSocketConnection):
    pass


_HONEST = {
    aioredis.Connection: _Plain,
    aioredis.SSLConnection: _Secure,
    aioredis.UnixDomainSocketConnection: _Local,
}


def connection_pool(url: str) -> aioredis.ConnectionPool:
    """Connections that give up soon, once tried again: a hint is not worth a long wait."""
    pool = aioredis.ConnectionPool.from_url(
        url,
        socket_timeout=TIMEOUT_SECONDS,
        socket_connect_timeout=TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 1),
        retry_on_error=[Lost],
        max_connections=64,
    )
    return _with_honest_connections(pool)


def _with_honest_connections(pool: aioredis.ConnectionPool) -> aioredis.ConnectionPool:
    pool.connection_class = _HONEST[pool.connection_class]
    return pool


class Signals:
    """One process's connection to Redis. Nothing that costs money may live only there."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = aioredis.Redis(connection_pool=connection_pool(url))

    async def close(self) -> None:
        await self.client.aclose(close_connection_pool=True)

    async def hint(self, channel: str, text: str) -> bool:
        """Publishes a hint; False when Redis is away, which only costs the hearer time."""
        try:
            await self.client.publish(channel, text)
        except LOST as error:
            log.warning("hint_lost", channel=channel, error=str(error))
            return False
        return True

    @asynccontextmanager
    async def listen(
        self, channels: Sequence[str]
    ) -> AsyncGenerator[AsyncGenerator[tuple[str, str]]]:
        """Hints on these channels as (channel, text), until Redis is lost (raises one of LOST)."""
        client = aioredis.Redis.from_url(self.url, socket_connect_timeout=TIMEOUT_SECONDS)
        _with_honest_connections(client.connection_pool)
        try:
            async with client.pubsub(ignore_subscribe_messages=True) as pubsub:
                await pubsub.subscribe(*channels)
                async with aclosing(_messages(pubsub)) as messages:
                    yield messages
        finally:
            await client.aclose()

    def script(self, path: Path) -> "Script":
        return Script(self.client, path.read_text(encoding="utf-8"))


class Script:
    """A Lua script that runs on the server in one step, loaded again when it was forgotten."""

    def __init__(self, client: "aioredis.Redis", text: str) -> None:
        self._script = client.register_script(text)

    async def run(self, keys: Sequence[str], args: Sequence[str | int | float]) -> list[int]:
        """The script's array of integers; raises one of LOST when Redis is away."""
        answer: list[int] = await self._script(keys=list(keys), args=list(args))
        return answer


async def _messages(pubsub: "aioredis.client.PubSub") -> AsyncGenerator[tuple[str, str]]:
    while True:
        message = await pubsub.get_message(timeout=60)
        if message is not None:
            yield message["channel"].decode(), message["data"].decode()
