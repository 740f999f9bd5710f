"""Feeds the engine from the committed frontier of a job."""

from collections.abc import Sequence

from jobs import runs
from jobs.runs import Lease
from runtime.database import Connection, Database
from workers.engine.visit import PageTask


class JobFrontier:
    """A Frontier over the page table: what is claimed here is in flight until it is settled."""

    def __init__(
        self, database: Database, lease: Lease, *, by_level: bool, patience_seconds: float
    ) -> None:
        self._database = database
        self._lease = lease
        self._by_level = by_level
        self._patience_seconds = patience_seconds

    async def claim(self, limit: int) -> Sequence[PageTask]:
        async def call(connection: Connection) -> list[runs.Claim]:
            return await runs.claim_pages(
                connection, self._lease, limit=limit, by_level=self._by_level
            )

        claims = await self._database.repeat(call, seconds=self._patience_seconds)
        # A claim whose answer was lost leaves its pages in flight: the next run takes them.
        return [
            PageTask(
                page_no=claim.page_no,
                url=claim.url,
                depth=claim.depth,
                is_start=claim.source == "seed",
            )
            for claim in claims
        ]

    async def was_left_out(self, key: bytes) -> bool:
        """Whether a limit of the job kept this URL out of the frontier."""
        async with self._database.connection() as connection:
            return await runs.was_left_out(connection, self._lease, key)
