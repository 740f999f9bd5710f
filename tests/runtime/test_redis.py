"""A lost connection to Redis is called lost, whatever the event loop calls it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from runtime.embedded.redis import EmbeddedRedis
from runtime.redis import LOST, Signals


def under_uvloop(url: str, call: Callable[[Signals], Awaitable[None]]) -> None:
    async def run() -> None:
        signals = Signals(url)
        try:
            await call(signals)
        finally:
            await signals.close()

    uvloop.run(run())


def lose(signals: Signals) -> None:
    """As when the server has gone and the client has not yet been told."""
    (connection,) = signals.client.connection_pool._available_connections
    connection._writer.transport.abort()


def test_a_call_on_a_lost_connection_is_made_on_a_new_one(redis_server: EmbeddedRedis) -> None:
    async def call(signals: Signals) -> None:
        assert await signals.hint("channel", "first")
        lose(signals)
        assert await signals.hint("channel", "second")

    under_uvloop(redis_server.url, call)


def test_who_listens_is_told_of_the_loss(redis_server: EmbeddedRedis) -> None:
    async def call(signals: Signals) -> None:
        async with signals.listen(["channel"]) as messages:
            waiting = asyncio.ensure_future(anext(messages))
            await signals.client.client_kill_filter(_type="pubsub")
            with pytest.raises(LOST):
                await waiting

    under_uvloop(redis_server.url, call)
