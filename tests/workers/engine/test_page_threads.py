"""Large pages are made one at a time, even when their callers have been cut off."""

import asyncio
import threading

import pytest

from workers.engine.page_threads import LARGE_BYTES, PageThreads


async def test_a_large_page_whose_caller_was_cut_off_still_has_its_turn() -> None:
    begun: list[int] = []
    first_begun, release = threading.Event(), threading.Event()

    def make(number: int) -> int:
        begun.append(number)
        first_begun.set()
        assert release.wait(30)
        return number

    with PageThreads(2) as threads:
        first = asyncio.create_task(threads.run(lambda: make(1), page_bytes=LARGE_BYTES + 1))
        await asyncio.to_thread(first_begun.wait)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.create_task(threads.run(lambda: make(2), page_bytes=LARGE_BYTES + 1))
        assert await threads.run(lambda: "small", page_bytes=10) == "small"
        assert begun == [1]
        release.set()
        assert await second == 2
