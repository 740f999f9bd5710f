"""Submits of one tenant that wait for its account are reserved together, in one transaction."""

import asyncio
from collections import deque
from uuid import UUID

import msgspec

from accounting import reserving
from accounting.pricing import Terms
from accounting.reserving import Ask, Enqueued, Submission
from runtime import database, loops
from runtime.database import Database
from runtime.errors import Refusal

GROUP_MAX = 50
"""Submits in one transaction: more would make the first wait for the last."""

Answer = Enqueued | Refusal | Exception


class Waiting(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A submit and where its answer goes."""

    ask: Ask
    answer: "asyncio.Future[Enqueued]"


class ReserveGroups:
    """An account is one lock, and each commit a wait for the disk: submits that wait share both.

    A submit that finds its tenant idle goes at once, and those that come meanwhile are the next
    group. Each has its own answer; credits that are not enough for all go to those who came first.
    """

    def __init__(self, pool: Database, *, seconds: float) -> None:
        """`seconds`: how long a group is repeated while PostgreSQL is away."""
        self._pool = pool
        self._seconds = seconds
        self._queues: dict[UUID, deque[Waiting]] = {}
        self._serving: set[asyncio.Task[None]] = set()

    async def enqueue(self, submission: Submission, agreed: Terms) -> Enqueued:
        """As reserving.enqueue; raises what that raises, and Unavailable."""
        waiting = Waiting(
            ask=Ask(submission=submission, agreed=agreed),
            answer=asyncio.get_running_loop().create_future(),
        )
        queue = self._queues.get(submission.tenant_id)
        if queue is None:
            queue = self._queues[submission.tenant_id] = deque()
            self._start(submission.tenant_id, queue)
        queue.append(waiting)
        return await waiting.answer

    async def close(self) -> None:
        """Gives up what is being reserved; those who wait for it are told so by cancellation."""
        await loops.end(*self._serving)

    def _start(self, tenant_id: UUID, queue: deque[Waiting]) -> None:
        task = asyncio.create_task(self._serve(tenant_id, queue))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, tenant_id: UUID, queue: deque[Waiting]) -> None:
        """Group after group until nobody of the tenant waits."""
        try:
            while queue:
                group = [queue.popleft() for _ in range(min(len(queue), GROUP_MAX))]
                await self._reserve([one for one in group if not one.answer.done()])
        finally:
            del self._queues[tenant_id]
            for waiting in queue:
                waiting.answer.cancel()

    async def _reserve(self, group: list[Waiting]) -> None:
        if not group:
            return
        try:
            answers: list[Answer] = list(await self._together(group))
        except database.UNSTORABLE as error:
            if len(group) > 1:
                # One of them was wrong in itself: alone, it takes no other with it.
                for waiting in group:
                    await self._reserve([waiting])
                return
            answers = [error]
        except Exception as error:  # noqa: BLE001 # each of the group gets it
            answers = [error] * len(group)
        for waiting, answer in zip(group, answers, strict=True):
            _tell(waiting.answer, answer)

    async def _together(self, group: list[Waiting]) -> list[Enqueued | Refusal]:
        asks = [waiting.ask for waiting in group]
        return await self._pool.repeat(
            lambda connection: reserving.enqueue_together(connection, asks), seconds=self._seconds
        )


def _tell(future: "asyncio.Future[Enqueued]", answer: Answer) -> None:
    """Whoever has gone away is told nothing: the job is there, and its key replays it."""
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
