"""A balancer before two gateways: one request a connection, and the next where one is gone."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing


@asynccontextmanager
async def balancing(ports: Sequence[int]) -> AsyncIterator[int]:
    """Its port. Clients must ask for `Connection: close`."""
    turns = itertools.cycle(range(len(ports)))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            request = await _request(reader)
            first = next(turns)
            for turn in range(len(ports)):
                answer = await _ask(ports[(first + turn) % len(ports)], request)
                if answer:
                    writer.write(answer)
                    await writer.drain()
                    return

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            length = int(value)
    return head + await reader.readexactly(length)


async def _ask(port: int, request: bytes) -> bytes:
    """The whole answer; nothing where the gateway is not there, or has gone without a word."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return b""
    with closing(writer):
        try:
            writer.write(request)
            return await reader.read(-1)
        except OSError:
            return b""
