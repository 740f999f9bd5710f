"""Results by index cursor: each final page once, whatever happens meanwhile."""

import random

from jobs import results
from jobs.records import Content
from runtime.content import ContentStore
from runtime.database import Database
from tests.support import builders, work


async def read(app: Database, run, *, after: int = -1, limit: int = 100, status=None):
    lease = run.lease
    async with app.transaction(lease.tenant_id) as tx:
        return await results.final_pages(
            tx, lease.tenant_id, lease.job_id, after=after, status=status, limit=limit
        )


async def a_run(app: Database, system: Database, links: int):
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_job(app, tenant.tenant_id, max_pages=100)
    run = await work.claim(system)
    await work.settle(system, run, found=[work.link(number) for number in range(links)])
    await work.pages(system, run)
    return run


async def test_a_reader_beside_a_running_job_meets_each_page_once(
    app: Database, system: Database
) -> None:
    run = await a_run(app, system, links=49)
    order = list(range(50))
    random.Random(7).shuffle(order)
    seen: list[int] = []

    for number in order:
        await work.settle(system, run, [work.ok(number)])
        pages, _ = await read(app, run, after=seen[-1] if seen else -1, limit=3)
        seen += [stored.page.index for stored in pages]
    while True:
        pages, _ = await read(app, run, after=seen[-1] if seen else -1, limit=3)
        if not pages:
            break
        seen += [stored.page.index for stored in pages]

    assert seen == list(range(50))


async def test_pages_after_an_open_one_wait_for_it(app: Database, system: Database) -> None:
    run = await a_run(app, system, links=3)
    await work.settle(system, run, [work.ok(0), work.ok(2), work.failed(3)])

    async with app.transaction(run.lease.tenant_id) as tx:
        last = await results.last_final(tx, run.lease.tenant_id, run.lease.job_id)
    pages, more = await read(app, run)

    assert ([stored.page.index for stored in pages], more, last) == ([0], False, 0)
    await work.settle(system, run, [work.ok(1)])
    assert [stored.page.index for stored in (await read(app, run))[0]] == [0, 1, 2, 3]


async def test_the_status_filter_and_the_limit(app: Database, system: Database) -> None:
    run = await a_run(app, system, links=3)
    await work.settle(system, run, [work.ok(0), work.failed(1), work.ok(2), work.skipped(3)])

    pages, more = await read(app, run, status="succeeded", limit=1)
    failed, _ = await read(app, run, status="failed")

    assert ([stored.page.index for stored in pages], more) == ([0], True)
    assert [(stored.page.index, stored.page.reason) for stored in failed] == [(1, "not_found")]


async def test_content_comes_out_of_the_segment_as_it_went_in(
    app: Database, system: Database, tmp_path
) -> None:
    run = await a_run(app, system, links=1)
    store = ContentStore(str(tmp_path))
    first = results.pack(Content(markdown="# One", links=[{"url": "u", "text": "t", "rel": ""}]))
    second = results.pack(Content(markdown="# Two", metadata={"language": "en"}))
    await store.put("a/b", first + second)
    await work.settle(
        system,
        run,
        [
            work.ok(0, segment="a/b", segment_offset=0, segment_length=len(first)),
            work.ok(1, segment="a/b", segment_offset=len(first), segment_length=len(second)),
        ],
    )

    stored, _ = await read(app, run)
    pages = await results.with_content(store, stored)

    assert [page.markdown for page in pages] == ["# One", "# Two"]
    assert pages[1].metadata == {"language": "en"}
    await store.delete_under("a/")
    gone = await results.with_content(store, stored)
    assert [page.status for page in gone] == ["succeeded", "succeeded"]
