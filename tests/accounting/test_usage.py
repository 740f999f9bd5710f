"""Usage agrees with the entries to the credit, however it is grouped."""

from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from uuid import UUID

import pytest

from accounting import usage
from accounting.usage import By, UsageReport, Wanted
from runtime.database import Database
from tests.support import builders, corrections, work

EVER = {
    "starts_at": datetime(2000, 1, 1, tzinfo=UTC),
    "ends_at": datetime(2100, 1, 1, tzinfo=UTC),
}


async def read(
    system: Database, tenant_id: UUID, by: By, *, limit: int = 100, **changes: Any
) -> UsageReport:
    async with system.snapshot() as snapshot:
        return await usage.read(
            snapshot,
            tenant_id,
            Wanted(by=by, **{**EVER, **changes}),
            after=None,
            limit=limit,
        )


async def moved(system: Database, tenant_id: UUID, kind: str) -> int:
    async with system.connection() as connection:
        total = await connection.fetchval(
            "SELECT coalesce(sum(amount), 0)::bigint FROM transfer"
            " WHERE tenant_id = $1 AND kind = $2",
            tenant_id,
            kind,
        )
    return int(total)


async def a_month(system: Database) -> UUID:
    """Three jobs with tags and hosts of their own, and a refund."""
    tenant = await builders.a_tenant(system, credits=1_000)
    for url, tags in (
        ("https://example.com/", ["shop", "eu"]),
        ("https://example.org:8443/", ["shop"]),
        ("https://example.net/", []),
    ):
        job_id = await builders.a_job(system, tenant.tenant_id, url=url, tags=tags)
        async with system.connection() as connection:
            run = await builders.claimed(connection, job_id)
            await builders.finished_pages(connection, run, ["succeeded", "failed", "succeeded"])
        await work.finish(system, run)
    await corrections.refund(system, tenant.tenant_id, job_id, [0])
    return tenant.tenant_id


@pytest.mark.parametrize("by", get_args(By))
async def test_each_grouping_agrees_with_the_entries(system: Database, by: By) -> None:
    tenant_id = await a_month(system)

    told = await read(system, tenant_id, by)

    assert told.total.credits_charged == await moved(system, tenant_id, "charge") == 6
    assert told.total.credits_refunded == await moved(system, tenant_id, "refund") == 1
    assert (told.total.succeeded, told.total.failed, told.total.skipped) == (6, 3, 0)
    if by != "tag":
        for name in told.total.__struct_fields__:
            assert sum(getattr(group, name) for group in told.items) == getattr(told.total, name)


async def test_each_tag_shows_its_jobs_and_the_total_is_true(system: Database) -> None:
    tenant_id = await a_month(system)

    told = await read(system, tenant_id, "tag")

    assert {group.group: group.credits_charged for group in told.items} == {
        "": 2,
        "eu": 2,
        "shop": 4,
    }
    assert told.total.credits_charged == 6


async def test_a_tag_that_is_named_twice_counts_once(system: Database) -> None:
    tenant_id = await a_month(system)
    job_id = await builders.a_job(system, tenant_id, tags=["twice", "twice"])
    async with system.connection() as connection:
        run = await builders.claimed(connection, job_id)
        await builders.finished_pages(connection, run, ["succeeded"])

    told = await read(system, tenant_id, "tag")

    assert next(group for group in told.items if group.group == "twice").credits_charged == 1


async def test_hosts_kinds_keys_and_days_have_their_names(system: Database) -> None:
    tenant_id = await a_month(system)
    names = {
        by: [group.group for group in (await read(system, tenant_id, by)).items]
        for by in get_args(By)
    }

    assert names["host"] == ["example.com", "example.net", "example.org"]
    assert names["kind"] == ["crawl"]
    assert names["key"] == [builders.KEY_ID]
    assert all(datetime.fromisoformat(day) for day in names["day"])


async def test_groups_page_through_and_the_total_stays(system: Database) -> None:
    tenant_id = await a_month(system)

    first = await read(system, tenant_id, "host", limit=2)
    async with system.snapshot() as snapshot:
        second = await usage.read(
            snapshot, tenant_id, Wanted(by="host", **EVER), after=first.next, limit=2
        )

    assert [group.group for group in first.items] == ["example.com", "example.net"]
    assert [group.group for group in second.items] == ["example.org"]
    assert second.next is None
    assert first.total == second.total


async def test_a_charge_counts_when_its_entry_was_recorded(system: Database) -> None:
    """Adjoining times share nothing and lose nothing, wherever the cut is."""
    tenant_id = await a_month(system)
    async with system.connection() as connection:
        cuts = [
            row["recorded_at"]
            for row in await connection.fetch(
                "SELECT recorded_at FROM transfer WHERE tenant_id = $1 AND kind = 'charge'",
                tenant_id,
            )
        ]
    whole = await read(system, tenant_id, "host")

    for cut in [*cuts, cuts[0] + timedelta(microseconds=1)]:
        before = await read(system, tenant_id, "host", ends_at=cut)
        after = await read(system, tenant_id, "host", starts_at=cut)
        for name in whole.total.__struct_fields__:
            assert getattr(before.total, name) + getattr(after.total, name) == getattr(
                whole.total, name
            )


async def test_nothing_used_is_an_empty_answer(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=5)

    told = await read(system, tenant.tenant_id, "day")

    assert told.items == []
    assert told.total.credits_charged == 0
