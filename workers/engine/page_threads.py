"""Threads that parse and convert pages, of the large ones one at a time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

T = TypeVar("T")

LARGE_BYTES = 1_048_576
"""A page's tree takes about twenty times its bytes: what is larger waits for its turn."""


class PageThreads:
    """Use with `with`: leaving it waits for the threads."""

    def __init__(self, count: int) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="extract")
        self._large = asyncio.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()

    async def run(self, call: Callable[[], T], *, page_bytes: int) -> T:
        """What the call returns or raises; a caller who is cut off does not stop the thread."""
        loop = asyncio.get_running_loop()
        if page_bytes <= LARGE_BYTES:
            return await loop.run_in_executor(self._executor, call)
        await self._large.acquire()
        work = loop.run_in_executor(self._executor, call)
        work.add_done_callback(self._next_large)
        return await asyncio.shield(work)

    def _next_large(self, done: "asyncio.Future[Any]") -> None:
        """Only now: a thread whose caller was cut off has held its memory until here."""
        self._large.release()
        if not done.cancelled():
            done.exception()  # nobody may be left to take it
