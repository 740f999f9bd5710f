"""Does to a real ledger what a model is asked, and tells both answers in the same words."""

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

import msgspec

from accounting import budgets, ledger, lots, metering, quotes, reserving, tenants
from accounting.budgets import BudgetRequest
from accounting.lots import Grant
from accounting.pricing import Terms
from accounting.reserving import Submission
from jobs import runs
from jobs.outcomes import Found, PageOutcome
from jobs.runs import Run
from runtime import database
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders, work

PAGES = """
SELECT job_id, page_no, state, depth, attempts, credits, reason FROM page
WHERE tenant_id = $1 ORDER BY job_id, page_no
"""


class Driver:
    """A pool in an event loop of its own, because the machine's rules are plain functions."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self.system = Database(url, role=database.SYSTEM, size=2)
        self.run(self.system.open())

    def run(self, call: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(call)

    def close(self) -> None:
        self.run(self.system.close())
        self._loop.close()

    async def _execute(self, statement: str, *arguments: object) -> None:
        async with self.system.connection() as connection:
            await connection.execute(statement, *arguments)

    def a_tenant(self) -> UUID:
        return self.run(builders.a_tenant(self.system)).tenant_id

    def set_status(self, tenant_id: UUID, status: str) -> None:
        async def change() -> None:
            async with self.system.connection() as connection:
                await tenants.change(connection, tenant_id, status=status)

        self.run(change())

    def grant(self, tenant_id: UUID, wanted: Grant) -> tuple[str, UUID | None]:
        async def give() -> tuple[str, UUID | None]:
            async with self.system.connection() as connection:
                lot_id, replayed = await lots.grant(connection, tenant_id, wanted)
            return "replayed" if replayed else "granted", lot_id

        return self._or_refusal(give(), {"idempotency_conflict": "conflict"})

    def age_lot(self, lot_id: UUID, gone: Any) -> None:
        self.run(self._execute("UPDATE lot SET expires_at = $2 WHERE lot_id = $1", lot_id, gone))

    def expire(self, tenant_id: UUID) -> int:
        async def expire() -> int:
            async with self.system.transaction() as tx:
                return await lots.expire_lots(tx, tenant_id)

        return self.run(expire())

    def quote(self, submission: Submission, agreed: Terms, *, is_late: bool) -> Submission:
        """The same submission, with a quote for these terms."""

        async def make() -> Submission:
            tenant_id = submission.tenant_id
            async with self.system.transaction(tenant_id) as tx:
                made = await quotes.make(tx, tenant_id, submission.request, agreed, resolve=False)
                if is_late:
                    await tx.execute(
                        "UPDATE quote SET expires_at = created_at WHERE quote_id = $1",
                        made.quote_id,
                    )
            request = msgspec.structs.replace(submission.request, quote_id=made.quote_id)
            return msgspec.structs.replace(submission, request=request)

        return self.run(make())

    def submit(self, submission: Submission, agreed: Terms) -> tuple[str, Any]:
        """The word of the reply, with the job it names or the details of the refusal."""

        async def enqueue() -> tuple[str, Any]:
            async with self.system.connection() as connection:
                made = await reserving.enqueue(connection, submission, agreed)
            return "replayed" if made.replayed else "created", made.job_id

        try:
            return self.run(enqueue())
        except Refusal as refused:
            return refused.code, refused.details

    def claim(self) -> Run | None:
        async def claim() -> Run | None:
            async with self.system.connection() as connection:
                return await runs.claim_job(connection, work.OWNER, lease_seconds=3_600)

        return self.run(claim())

    def pages(self, run: Run, limit: int, *, by_level: bool) -> list[int]:
        claims = self.run(work.pages(self.system, run, limit, by_level=by_level))
        return [claim.page_no for claim in claims]

    def settle(self, run: Run, outcomes: list[PageOutcome], found: list[Found]) -> str:
        return self.run(work.settle(self.system, run, outcomes, found))

    def top_up(self, run: Run) -> str:
        async def top_up() -> str:
            async with self.system.connection() as connection:
                return await metering.top_up(connection, run.lease, run.prices)

        return self.run(top_up())

    def finish(self, run: Run, reason: Any) -> str:
        async def finish() -> str:
            async with self.system.connection() as connection:
                return await metering.finish(
                    connection, run.lease, reason, extensions=run.extensions
                )

        return self.run(finish())

    def cancel(self, tenant_id: UUID, job_id: UUID) -> str:
        async def cancel() -> str:
            async with self.system.connection() as connection:
                return await metering.cancel(connection, tenant_id, job_id)

        return self.run(cancel())

    def hand_back(self, run: Run) -> bool:
        async def hand_back() -> bool:
            async with self.system.connection() as connection:
                return await runs.hand_back(connection, run.lease)

        return self.run(hand_back())

    def let_time_pass(self, job_id: UUID, *columns: str, interval: str = "1 hour") -> None:
        changes = ", ".join(f"{column} = now() - interval '{interval}'" for column in columns)
        self.run(self._execute(f"UPDATE job SET {changes} WHERE job_id = $1", job_id))

    def sweep(self) -> dict[UUID, str]:
        async def sweep() -> dict[UUID, str]:
            async with self.system.connection() as connection:
                swept = await metering.sweep_overdue(connection, limit=100)
            assert [one for one in swept if one.fault] == []
            return {one.job: one.reason for one in swept}

        return self.run(sweep())

    def free(self) -> set[UUID]:
        async def free() -> set[UUID]:
            async with self.system.connection() as connection:
                return {job_id for _, job_id, _ in await runs.free_leases(connection, limit=100)}

        return self.run(free())

    def put_budget(self, tenant_id: UUID, wanted: BudgetRequest) -> UUID:
        async def put() -> UUID:
            async with self.system.connection() as connection:
                return await budgets.put(connection, tenant_id, wanted)

        return self.run(put())

    def remove_budget(self, tenant_id: UUID, budget_id: UUID) -> None:
        async def remove() -> None:
            async with self.system.transaction() as tx:
                await budgets.remove(tx, tenant_id, budget_id)

        self.run(remove())

    def balance(self, tenant_id: UUID) -> dict[str, Any]:
        async def read() -> dict[str, Any]:
            async with self.system.connection() as connection:
                return msgspec.structs.asdict(await ledger.balance(connection, tenant_id))

        told = self.run(read())
        told["lots"] = [(lot.lot_id, lot.remaining) for lot in told["lots"]]
        return told

    def status(self, tenant_id: UUID, job_id: UUID, names: list[str]) -> dict[str, Any]:
        job = self.run(work.status_of(self.system, tenant_id, job_id))
        parts = (job, job.progress, job.usage)
        told = {name: value for part in parts for name, value in _fields(part).items()}
        return {name: told[name] for name in names}

    def page_rows(self, tenant_id: UUID) -> list[tuple[Any, ...]]:
        async def read() -> list[tuple[Any, ...]]:
            async with self.system.connection() as connection:
                return [tuple(row) for row in await connection.fetch(PAGES, tenant_id)]

        return self.run(read())

    def budgets(self, tenant_id: UUID) -> dict[UUID, tuple[int, int, int]]:
        async def read() -> dict[UUID, tuple[int, int, int]]:
            async with self.system.connection() as connection:
                listed = await budgets.list_all(connection, tenant_id)
            return {one.budget_id: (one.used, one.held, one.cap) for one in listed}

        return self.run(read())

    def violations(self) -> list[Any]:
        return self.run(work.violations(self.system))

    def _or_refusal(self, call: Coroutine[Any, Any, Any], words: dict[str, str]) -> Any:
        try:
            return self.run(call)
        except Refusal as refused:
            return words[refused.code], None


def _fields(part: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(part, name) for name in part.__struct_fields__}
