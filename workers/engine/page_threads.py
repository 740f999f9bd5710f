"""Threads that parse and convert pages, of the large ones one at a time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Self, TypeVar

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
        async with self._large if page_bytes > LARGE_BYTES else nullcontext():
            return await asyncio.get_running_loop().run_in_executor(self._executor, call)
