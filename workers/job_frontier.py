"""Feeds the engine from the committed frontier of a job."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from accounting import metering
from jobs import runs
from jobs.runs import Claim, Run
from runtime.database import Connection, Database
from workers.engine.visit import PageTask

T = TypeVar("T")


class JobFrontier:
    """A Frontier over the page table: what is claimed here is in flight until it is settled."""

    def __init__(
        self,
        database: Database,
        run: Run,
        *,
        by_level: bool,
        ahead: int,
        patience_seconds: float,
    ) -> None:
        """`ahead`: so many URLs may be claimed with a flush, before the crawl asks for them."""
        self._database = database
        self._run = run
        self._lease = run.lease
        self.by_level = by_level
        self._ahead = ahead
        self._stock: deque[PageTask] = deque()
        self._patience_seconds = patience_seconds
        self._may_top_up = run.request.reservation == "rolling"

    def room(self) -> int:
        """How many URLs a flush may claim for the crawl now."""
        return self._ahead - len(self._stock)

    def stock(self, claims: Iterable[Claim]) -> None:
        """URLs that a flush has claimed; they are given out before any other."""
        self._stock.extend(_task(claim) for claim in claims)

    async def claim(self, limit: int) -> Sequence[PageTask]:
        """Up to so many URLs; a rolling hold is topped up before it would hold any of them back."""
        if self._stock:
            return [self._stock.popleft() for _ in range(min(limit, len(self._stock)))]
        tasks = await self._claim(limit)
        if len(tasks) < limit and self._may_top_up and await self._top_up():
            tasks = [*tasks, *await self._claim(limit - len(tasks))]
        return tasks

    async def _top_up(self) -> bool:
        """Whether the hold has grown; refused for want of credits it is not asked for again."""
        standing = await self._repeat(lambda c: runs.standing(c, self._lease))
        price = max(self._run.prices.values())
        if not standing.queued or standing.outstanding >= (standing.in_flight + 1) * price:
            return False
        answer = await self._repeat(lambda c: metering.top_up(c, self._lease, self._run.prices))
        # The ceiling is raised when the job is extended.
        self._may_top_up = answer in {"topped_up", "at_ceiling"}
        return answer == "topped_up"

    async def _repeat(self, call: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._database.repeat(call, seconds=self._patience_seconds)

    async def _claim(self, limit: int) -> list[PageTask]:
        async def call(connection: Connection) -> list[Claim]:
            return await runs.claim_pages(
                connection, self._lease, limit=limit, by_level=self.by_level
            )

        claims = await self._repeat(call)
        # A claim whose answer was lost leaves its pages in flight: the next run takes them.
        return [_task(claim) for claim in claims]

    async def was_left_out(self, key: bytes) -> bool:
        """Whether a limit of the job kept this URL out of the frontier."""
        return await self._repeat(lambda c: runs.was_left_out(c, self._lease, key))


def _task(claim: Claim) -> PageTask:
    return PageTask(
        page_no=claim.page_no,
        url=claim.url,
        depth=claim.depth,
        is_start=claim.source == "seed",
    )
