"""Wires between processes that can be cut, slowed or deafened, or that lose one answer.

What is done to them has the names of Toxiproxy's toxics where it has one.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

CHUNK_BYTES = 65_536
RESET = (socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
"""The option with which closing a socket is a reset, and nothing waits for being sent."""

Target = Path | int
"""A unix socket, or a port of this machine."""


class Wire:
    """A port of this machine that leads to a server; every method may be called by any thread."""

    def __init__(self, name: str, target: Target, loop: asyncio.AbstractEventLoop) -> None:
        self.name = name
        self.port = 0
        self.latency_seconds = 0.0
        """How long each chunk waits before it is passed on, in both directions."""
        self.losing_answers = 0
        """So many of the next answers are not passed on; their connection is reset instead."""
        self.losing_requests = 0
        self._target = target
        self._loop = loop
        self._open = asyncio.Event()
        self._open.set()
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()

    async def serve(self, port: int = 0) -> asyncio.Server:
        server = await asyncio.start_server(self._connect, "127.0.0.1", port)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def reset_peer(self) -> None:
        """Resets every connection, once."""
        self._loop.call_soon_threadsafe(self._reset_all)

    def timeout(self) -> None:
        """Passes nothing on and closes nothing, as behind a lost network, until `mend`."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def mend(self) -> None:
        """As good as new; what had been kept back is passed on."""
        self.latency_seconds = 0.0
        self.losing_answers = self.losing_requests = 0
        self._loop.call_soon_threadsafe(self._open.set)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # a task of start_server that ends cancelled is logged as an error; this one is not one
        with contextlib.suppress(asyncio.CancelledError):
            await self._lead(reader, writer)

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        try:
            far_reader, far_writer = await self._reach()
        except OSError:
            _reset(writer)
            return
        pair = (writer, far_writer)
        self._pairs.add(pair)
        try:
            await asyncio.gather(
                self._pass(reader, far_writer, pair, answers=False),
                self._pass(far_reader, writer, pair, answers=True),
            )
        finally:
            self._pairs.discard(pair)
            for end in pair:
                end.close()

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, int):
            return await asyncio.open_connection("127.0.0.1", self._target)
        return await asyncio.open_unix_connection(str(self._target))

    async def _pass(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        pair: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
        *,
        answers: bool,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(CHUNK_BYTES):
                await asyncio.sleep(self.latency_seconds)
                await self._open.wait()
                if self._loses(answers=answers):
                    break
                sink.write(data)
                await sink.drain()
            else:
                if sink.can_write_eof():
                    sink.write_eof()
                return
        for end in pair:
            _reset(end)

    def _loses(self, *, answers: bool) -> bool:
        if answers and self.losing_answers:
            self.losing_answers -= 1
            return True
        if not answers and self.losing_requests:
            self.losing_requests -= 1
            return True
        return False

    def _reset_all(self) -> None:
        for pair in list(self._pairs):
            for end in pair:
                _reset(end)


class Wires:
    """A thread in which wires pass on what they are given."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="wires")
        self.all: list[Wire] = []

    @contextlib.contextmanager
    def laid(self) -> Iterator["Wires"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._do(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def lay(self, name: str, target: Target, *, port: int = 0) -> Wire:
        """A wire on that port, or any, which works at once."""
        wire = Wire(name, target, self._loop)
        self._servers.append(self._do(wire.serve(port)))
        self.all.append(wire)
        return wire

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        passing = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)


def _reset(writer: asyncio.StreamWriter) -> None:
    ours = writer.get_extra_info("socket")
    if ours is not None and ours.family != socket.AF_UNIX:
        with contextlib.suppress(OSError):
            ours.setsockopt(*RESET)
    writer.transport.abort()
