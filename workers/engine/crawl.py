"""The loop: take URLs from the frontier, visit them side by side, hand on what came of them."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from runtime import clock, loops
from workers.engine.visit import PageTask, Visit


class Frontier(Protocol):
    """Where the URLs to fetch come from."""

    async def claim(self, limit: int) -> Sequence[PageTask]:
        """Up to so many URLs; none when nothing may be fetched now."""
        ...


class Sink(Protocol):
    """Where finished pages go."""

    async def add(self, visit: Visit) -> None:
        """Takes a page; waits while too many are unsettled."""
        ...

    async def settle(self) -> bool:
        """Settles all it has; whether that was anything, so that new URLs may be there."""
        ...


class Crawl:
    """One run's loop: so many pages side by side until the frontier is empty, or `stop` is set."""

    def __init__(
        self,
        frontier: Frontier,
        sink: Sink,
        visit: Callable[[PageTask], Awaitable[Visit]],
        *,
        concurrency: int,
        stop: asyncio.Event,
        begin_no_more: Callable[[], None] = lambda: None,
    ) -> None:
        """`begin_no_more` is called at a stop: it cancels the tasks whose request has not begun."""
        self._begin_no_more = begin_no_more
        self._frontier = frontier
        self._sink = sink
        self._visit = visit
        self._concurrency = concurrency
        self._stop = stop
        self._ready: deque[PageTask] = deque()
        self._claiming = asyncio.Lock()
        self._drained = False
        self._finished = False
        self._idle = 0
        self._news = asyncio.Event()

    async def run(self, grace_seconds: Callable[[], float], *, cut: asyncio.Event) -> bool:
        """True when all is fetched and settled; False when stopped, with what was done handed on.

        After a stop, pages in flight may come in for so many seconds, or until `cut` is set.
        """
        fetching = {asyncio.create_task(self._fetch_pages()) for _ in range(self._concurrency)}
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await self._until_done_or(stopping, fetching)
            if self._stop.is_set() and (seconds := grace_seconds()) > 0:
                self._begin_no_more()
                self.look_again()
                await _all_or(cut, fetching, seconds)
            for fetcher in fetching:
                if fetcher.done() and not fetcher.cancelled():
                    fetcher.result()
            return self._finished
        finally:
            await loops.end(*fetching, stopping)

    async def _until_done_or(
        self, stopping: "asyncio.Task[Any]", fetching: set["asyncio.Task[None]"]
    ) -> None:
        """Returns when all have ended, when one has failed, or when the run is to stop."""
        running: set[asyncio.Task[Any]] = {*fetching, stopping}
        while len(running) > 1:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            if stopping in done or any(task.exception() for task in done):
                return

    def look_again(self) -> None:
        """New URLs may be in the frontier: a batch was settled."""
        self._drained = False
        self._news.set()
        self._news = asyncio.Event()

    async def _fetch_pages(self) -> None:
        while (task := await self._next()) is not None:
            await self._sink.add(await self._visit(task))

    async def _next(self) -> PageTask | None:
        while not (self._stop.is_set() or self._finished):
            if self._ready:
                return self._ready.popleft()
            if self._drained:
                await self._wait_for_news()
            else:
                await self._claim()
        return None

    async def _claim(self) -> None:
        async with self._claiming:
            if self._ready or self._drained:
                return
            news = self._news
            self._ready.extend(await self._frontier.claim(self._concurrency))
            # What was settled while we asked may have been missed: only then ask once more.
            self._drained = not self._ready and news is self._news

    async def _wait_for_news(self) -> None:
        """Whoever is the last to fall idle settles what is left, and so finds out if it was all."""
        self._idle += 1
        try:
            if self._idle < self._concurrency:
                await self._news.wait()
            elif await self._sink.settle():
                self.look_again()
            else:
                self._finished = True
                self.look_again()
        finally:
            self._idle -= 1


async def _all_or(cut: asyncio.Event, fetching: set["asyncio.Task[None]"], seconds: float) -> None:
    """Waits for all of them, for the cut, or for so many seconds."""
    cutting = asyncio.create_task(cut.wait())
    until = clock.monotonic() + seconds
    running: set[asyncio.Task[Any]] = {*fetching, cutting}
    while len(running) > 1 and not cut.is_set() and clock.monotonic() < until:
        _, running = await asyncio.wait(
            running, timeout=until - clock.monotonic(), return_when=asyncio.FIRST_COMPLETED
        )
    await loops.end(cutting)
