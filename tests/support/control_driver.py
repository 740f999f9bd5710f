"""Does to real jobs what the controls of the model are asked, alone or two at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar
from uuid import UUID

from accounting import metering
from jobs import controls
from jobs.requests import Extension
from jobs.runs import Run
from runtime.database import Connection
from runtime.errors import Refusal, Unavailable
from tests.support.ledger_driver import Driver
from tests.support.races import WAITING

T = TypeVar("T")

LOST = "lost"
"""What a caller is told whose connection has died: the call was made, or it was not."""

LIVES = """
SELECT job_id, lease_token, lease_owner IS NOT NULL, deaths, barren_deaths, pause_reason
FROM job WHERE tenant_id = $1
"""
CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' ORDER BY state_change LIMIT 1
"""
LOCK = "SELECT 1 FROM job WHERE job_id = $1 FOR UPDATE"


class ControlDriver(Driver):
    """The controls, in the same words as the model's."""

    def _asked(self, call: Callable[[Connection], Awaitable[T]]) -> T | str:
        async def ask() -> T:
            async with self.system.connection() as connection:
                return await call(connection)

        try:
            told: T = self.run(ask())
        except Refusal as refused:
            return refused.code
        return told

    def pause(self, tenant_id: UUID, job_id: UUID) -> str:
        return self._asked(lambda connection: controls.pause(connection, tenant_id, job_id))

    def resume(self, tenant_id: UUID, job_id: UUID) -> str:
        return self._asked(lambda connection: controls.resume(connection, tenant_id, job_id))

    def extend(self, tenant_id: UUID, job_id: UUID, pages: int, credits: int | None) -> int | str:
        wanted = Extension(max_pages=pages, max_credits=credits)
        return self._asked(
            lambda connection: metering.extend(connection, tenant_id, job_id, wanted)
        )

    def end_pause(self, run: Run) -> str:
        return self._asked(lambda connection: controls.end_pause(connection, run.lease))

    def pause_for_budget(self, run: Run) -> str:
        return self._asked(
            lambda connection: controls.pause_for_budget(
                connection, run.lease, extensions=run.extensions
            )
        )

    def resume_funded(self) -> set[UUID]:
        swept = self._asked(lambda connection: metering.resume_funded(connection, limit=100))
        assert not isinstance(swept, str)
        assert [one for one in swept if one.fault] == []
        return {one.job for one in swept}

    def lives(self, tenant_id: UUID) -> dict[UUID, tuple[Any, ...]]:
        rows = self._asked(lambda connection: connection.fetch(LIVES, tenant_id))
        return {row[0]: tuple(row)[1:] for row in rows}


class Arena:
    """Two calls on two connections of a pool each, which meet at the lock of one job."""

    def __init__(self, url: str) -> None:
        self._gate = ControlDriver(url)
        self._rivals = [ControlDriver(url), ControlDriver(url)]
        self._threads = ThreadPoolExecutor(len(self._rivals))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        for driver in (self._gate, *self._rivals):
            driver.close()

    def race(
        self, job_id: UUID, calls: Sequence[Callable[[ControlDriver], T]], *, cut: bool
    ) -> list[T | str]:
        """What both answer; each has read nothing yet when the other begins.

        `cut` ends the connection of one that waits, which may be called LOST then.
        """
        return self._gate.run(self._race(job_id, calls, cut=cut))

    def aside(self, job_id: UUID, call: Callable[[ControlDriver], T]) -> T:
        """What is answered while the job is locked, which the call has to pass over."""
        return self._gate.run(self._aside(job_id, call))

    async def _aside(self, job_id: UUID, call: Callable[[ControlDriver], T]) -> T:
        async with self._gate.system.transaction() as gate:
            await gate.execute(LOCK, job_id)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, call, self._rivals[0])

    async def _race(
        self, job_id: UUID, calls: Sequence[Callable[[ControlDriver], T]], *, cut: bool
    ) -> list[T | str]:
        loop = asyncio.get_running_loop()
        async with self._gate.system.transaction() as gate:
            await gate.execute(LOCK, job_id)
            racing = [
                loop.run_in_executor(self._threads, _or_lost, call, driver)
                for call, driver in zip(calls, self._rivals, strict=True)
            ]
            # who passes over a locked job does not wait for it
            while sum(one.done() for one in racing) + await gate.fetchval(WAITING) < len(racing):
                await gate.execute("SELECT pg_stat_clear_snapshot()")
                await asyncio.sleep(0.001)
            if cut:
                await gate.execute(CUT)
        return await asyncio.gather(*racing)


def _or_lost(call: Callable[[ControlDriver], T], driver: ControlDriver) -> T | str:
    try:
        return call(driver)
    except Unavailable:
        return LOST
