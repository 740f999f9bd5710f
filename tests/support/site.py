"""A scripted web server on loopback: raw answers, and a log of what was asked."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Self

import msgspec
import pytest
import pytest_asyncio

from jobs import urls
from jobs.addresses import AddressPolicy
from jobs.urls import Target

LOOPBACK = AddressPolicy.of(["127.0.0.0/8", "::1/128"])


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """One request as the server read it; header names are lower-case."""

    method: str
    path: str
    headers: dict[str, str]
    connection: int


Handler = Callable[[Visit, asyncio.StreamWriter], Awaitable[None]]


class Site:
    """Answers by path (with its query); an unknown path is 404. Use with `async with`."""

    def __init__(self, host: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None) -> None:
        self.host = host
        self.tls = tls
        self.port = 0
        self.visits: list[Visit] = []
        self.answers: dict[str, bytes | Handler] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = 0

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [visit.path for visit in self.visits]

    def target(self, path: str = "/") -> Target:
        return urls.parse_target(self.url + path, policy=LOOPBACK)

    def page(
        self,
        path: str,
        body: str | bytes = b"",
        *,
        status: int = 200,
        content_type: str | None = "text/html; charset=utf-8",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """A whole answer with the right Content-Length; the connection stays open."""
        content = body.encode() if isinstance(body, str) else body
        lines = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {len(content)}"]
        if content_type is not None:
            lines.append(f"Content-Type: {content_type}")
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.answers[path] = "\r\n".join([*lines, "", ""]).encode("latin-1") + content

    def redirect(self, path: str, location: str, status: int = 302) -> None:
        self.page(path, status=status, content_type=None, headers={"Location": location})

    def raw(self, path: str, answer: bytes) -> None:
        """Exactly these bytes, then the connection is closed."""

        async def send(_: Visit, writer: asyncio.StreamWriter) -> None:
            writer.write(answer)
            await writer.drain()

        self.answers[path] = send

    def handle(self, path: str, handler: Handler) -> None:
        """A coroutine that writes the answer itself; the connection is closed after it."""
        self.answers[path] = handler

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self.host, 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        task = asyncio.ensure_future(self._serve(reader, writer, self._connections))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answer(reader, writer, connection):
                    pass
        finally:
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        request, *lines = head.split("\r\n")
        method, path, _ = request.split(" ", 2)
        pairs = (line.split(":", 1) for line in lines if line)
        headers = {name.lower(): value.strip() for name, value in pairs}
        await reader.readexactly(int(headers.get("content-length", "0")))
        visit = Visit(method=method, path=path, headers=headers, connection=connection)
        self.visits.append(visit)
        answer = self.answers.get(path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
            return True
        await answer(visit, writer)
        return False


@pytest_asyncio.fixture(loop_scope="session")
async def site() -> AsyncIterator[Site]:
    async with Site() as running:
        yield running


@pytest.fixture
def loopback_policy() -> AddressPolicy:
    return LOOPBACK


def html(*links: str, title: str = "A page", text: str = "") -> str:
    """A page with these links, each named by its own address."""
    anchors = " ".join(f'<a href="{link}">{link}</a>' for link in links)
    return (
        f"<html><head><title>{title}</title></head>"
        f"<body><main><h1>{title}</h1><p>{text or title}</p>{anchors}</main></body></html>"
    )
