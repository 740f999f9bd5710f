"""Reads final pages by index cursor, and their content out of the segments."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import msgspec

from jobs.records import Content, Page, StoredPage
from jobs.vocabulary import PageStatus
from runtime import content, sql
from runtime.content import ContentStore
from runtime.database import Connection, Row

SQL = sql.beside(__file__)

CONTENT_BYTES_MAX = 64 * 1024 * 1024
"""A stored page expanded; a page of 10 MiB in all its formats stays far below it."""
READS_AT_ONCE = 16


async def final_pages(
    tx: Connection,
    tenant_id: UUID,
    job_id: UUID,
    *,
    after: int,
    status: PageStatus | None,
    limit: int,
) -> tuple[list[StoredPage], bool]:
    """Final pages beyond an index, in index order, and whether more of them are there now."""
    rows = await tx.fetch(SQL.final_pages, tenant_id, job_id, after, status, limit + 1)
    return [_stored(row) for row in rows[:limit]], len(rows) > limit


async def last_final(tx: Connection, tenant_id: UUID, job_id: UUID) -> int:
    """The index up to which every page is final now; -1 where none is."""
    last = await tx.fetchval(SQL.last_final, tenant_id, job_id)
    return -1 if last is None else int(last)


async def with_content(store: ContentStore, stored: Sequence[StoredPage]) -> list[Page]:
    """The pages with what their segments hold, read side by side, a bounded number at a time."""
    gate = asyncio.Semaphore(READS_AT_ONCE)

    async def read(one: StoredPage) -> Page:
        async with gate:
            return await _with_content(store, one)

    return list(await asyncio.gather(*map(read, stored)))


def pack(kept: Content) -> bytes:
    """A page's content as it stands in a segment."""
    return content.compress(msgspec.json.encode(kept))


def unpack(frame: bytes) -> Content:
    return msgspec.json.decode(content.expand(frame, bytes_max=CONTENT_BYTES_MAX), type=Content)


async def _with_content(store: ContentStore, stored: StoredPage) -> Page:
    if stored.segment is None:
        return stored.page
    frame = await store.get(stored.segment, stored.segment_offset, stored.segment_length)
    if frame is None:
        return stored.page
    kept = await asyncio.to_thread(unpack, frame)
    return msgspec.structs.replace(
        stored.page, **{name: getattr(kept, name) for name in Content.__struct_fields__}
    )


def _stored(row: Row) -> StoredPage:
    plain = {
        name: row[name]
        for name in Page.__struct_fields__
        if name not in Content.__struct_fields__ and name not in {"index", "status"}
    }
    return StoredPage(
        page=Page(index=row["page_no"], status=row["state"], **plain),
        segment=row["segment"],
        segment_offset=row["segment_offset"] or 0,
        segment_length=row["segment_length"] or 0,
        content_bytes=row["content_bytes"] or 0,
    )
