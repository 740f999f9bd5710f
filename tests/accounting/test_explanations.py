"""Every entry leads to its job and pages, every page to its entry; a job's bill adds up."""

from typing import Any
from uuid import UUID

import pytest

from accounting import explanations, job_statements, ledger
from accounting.explanations import Explanation
from accounting.job_statements import JobStatement, StatementPart
from accounting.ledger import Entry, EntryFilter
from runtime import ids
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders, corrections, work

OUTCOMES = ["succeeded", "failed", "succeeded"]


async def a_bill(system: Database, *, finish: bool = True) -> tuple[UUID, UUID]:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, tenant.tenant_id, max_pages=10)
    async with system.connection() as connection:
        run = await builders.claimed(connection, job_id)
        await builders.finished_pages(
            connection, run, OUTCOMES, content_hash="ab" * 32, bytes=12, title="A page"
        )
    if finish:
        await work.finish(system, run)
    return tenant.tenant_id, job_id


async def bill(system: Database, tenant_id: UUID, job_id: UUID, **changes: Any) -> JobStatement:
    part = StatementPart(**{"after": -1, "entries_after": 0, "limit": 100, **changes})
    async with system.snapshot() as snapshot:
        return await job_statements.read(snapshot, tenant_id, job_id, part)


async def entries(system: Database, tenant_id: UUID, kind: Any) -> list[Entry]:
    async with system.connection() as connection:
        return await ledger.entries(
            connection, tenant_id, EntryFilter(kind=kind), after=0, limit=100
        )


async def explained(
    system: Database, tenant_id: UUID, entry_id: int, *, after: int = -1, limit: int = 100
) -> Explanation:
    async with system.snapshot() as snapshot:
        return await explanations.of_entry(snapshot, tenant_id, entry_id, after=after, limit=limit)


async def test_the_bill_of_a_final_job_closes_with_zero(system: Database) -> None:
    tenant_id, job_id = await a_bill(system)

    told = await bill(system, tenant_id, job_id)

    assert (told.hold.reserved, told.hold.charged, told.hold.released) == (10, 2, 8)
    assert (told.hold.state, told.hold.outstanding, told.closing) == ("closed", 0, 0)
    assert [(page.index, page.status, page.credits) for page in told.pages] == [
        (0, "succeeded", 1),
        (1, "failed", 0),
        (2, "succeeded", 1),
    ]
    assert {page.entry_id for page in told.pages if page.credits} == {
        entry.entry_id for entry in told.entries if entry.kind == "charge"
    }
    assert told.pages[1].reason == "not_found"
    assert (told.price_version, told.prices["page"]) == (1, 1)
    assert (told.pages_total, told.pages_charged) == (3, 2)
    assert (told.next, told.entries_next) == (None, None)
    assert told.proves


async def test_the_bill_of_a_running_job_tells_what_is_outstanding(system: Database) -> None:
    tenant_id, job_id = await a_bill(system, finish=False)

    told = await bill(system, tenant_id, job_id)

    assert told.closing == told.hold.outstanding == 7
    assert told.proves


async def test_refunds_stand_apart_from_the_bill(system: Database) -> None:
    tenant_id, job_id = await a_bill(system)
    await corrections.refund(system, tenant_id, job_id, [2])

    told = await bill(system, tenant_id, job_id)

    assert (told.closing, told.hold.charged, told.refunded) == (0, 2, 1)
    assert [(one.index, one.credits, one.reason) for one in told.refunds] == [
        (2, 1, "the page was empty")
    ]
    assert told.proves


async def test_a_big_bill_comes_in_parts(system: Database) -> None:
    tenant_id, job_id = await a_bill(system)
    whole = await bill(system, tenant_id, job_id)

    first = await bill(system, tenant_id, job_id, limit=2)
    second = await bill(
        system, tenant_id, job_id, limit=2, after=first.next, entries_after=first.entries_next
    )

    assert first.pages + second.pages == whole.pages
    assert first.entries + second.entries == whole.entries
    assert second.next is None
    assert first.proves


async def test_a_charge_leads_to_the_evidence_of_its_pages_and_back(system: Database) -> None:
    tenant_id, job_id = await a_bill(system)
    (charge,) = await entries(system, tenant_id, "charge")

    told = await explained(system, tenant_id, charge.entry_id)

    assert told.job is not None
    assert told.job.job_id == job_id
    assert sum(page.credits for page in told.pages) == charge.amount
    for page in told.pages:
        assert (page.status, page.http_status, page.bytes) == ("succeeded", 200, 12)
        assert page.content_hash == "ab" * 32
        async with system.snapshot() as snapshot:
            back = await explanations.of_page(snapshot, tenant_id, job_id, page.index)
        assert back.entry == charge
        assert back.pages == [page]


async def test_a_page_that_cost_nothing_says_so(system: Database) -> None:
    tenant_id, job_id = await a_bill(system)

    async with system.snapshot() as snapshot:
        told = await explanations.of_page(snapshot, tenant_id, job_id, 1)

    assert told.entry is None
    assert told.sentence == "The page failed: nothing was charged for it."


@pytest.mark.parametrize("kind", ["grant", "reserve", "release", "refund", "adjust_out"])
async def test_every_other_kind_is_explained(system: Database, kind: str) -> None:
    tenant_id, job_id = await a_bill(system)
    await corrections.refund(system, tenant_id, job_id, [0])
    await corrections.adjust(system, tenant_id, "adjust_out", 3)
    entry = (await entries(system, tenant_id, kind))[0]

    told = await explained(system, tenant_id, entry.entry_id)

    assert told.sentence.startswith(f"{entry.amount} credits ")
    assert (told.job is not None) == (kind in {"reserve", "release", "refund"})
    assert (told.lot is not None) == (entry.lot_id is not None)
    assert [page.index for page in told.pages] == ([0] if kind == "refund" else [])


async def test_pages_of_an_explanation_come_in_parts(system: Database) -> None:
    tenant_id, _ = await a_bill(system)
    (charge,) = await entries(system, tenant_id, "charge")

    first = await explained(system, tenant_id, charge.entry_id, limit=1)
    assert first.next is not None
    second = await explained(system, tenant_id, charge.entry_id, after=first.next, limit=1)

    assert [page.index for page in first.pages + second.pages] == [0, 2]
    assert second.next is None


async def test_anothers_entries_and_pages_are_not_found(system: Database) -> None:
    tenant_id, job_id = await a_bill(system)
    stranger = (await builders.a_tenant(system)).tenant_id
    (charge,) = await entries(system, tenant_id, "charge")

    for call in (
        explained(system, stranger, charge.entry_id),
        bill(system, stranger, job_id),
        bill(system, tenant_id, ids.new_id()),
    ):
        with pytest.raises(Refusal) as refused:
            await call
        assert refused.value.code == "not_found"
