"""Streams everything that proves a tenant's balance: entries, seals, balance, signature."""

import hashlib
from collections.abc import AsyncIterator
from datetime import datetime
from uuid import UUID

import msgspec

from accounting import ledger, seals
from accounting.export_lines import FORMAT, PURPOSE, EndLine, HeaderLine, Sums
from accounting.ledger import Balance
from runtime import sql
from runtime.database import Database
from runtime.signing import Signer

SQL = sql.beside(__file__)

ROWS_A_READ = 500


class Extent(msgspec.Struct, frozen=True, kw_only=True):
    """What an export is of; `snapshot` is PostgreSQL's text of the instant it was begun."""

    exported_at: datetime
    snapshot: str
    sealed_through: int
    last_seal: int


class Export:
    """One export, fixed when it is begun; later entries and seals are not in it."""

    def __init__(
        self, database: Database, header: HeaderLine, extent: Extent, signer: Signer
    ) -> None:
        self._database = database
        self._signer = signer
        self._extent = extent
        self.header = header

    async def chunks(self) -> AsyncIterator[bytes]:
        """JSON Lines, each chunk out of one short transaction; ends with the line that signs."""
        written = hashlib.sha256()
        count = 0
        async for lines in self._lines():
            chunk = b"".join(line + b"\n" for line in lines)
            written.update(chunk)
            count += len(lines)
            yield chunk
        signature = self._signer.sign(PURPOSE, written.digest())
        end = EndLine(lines=count, sha256=written.hexdigest(), signature=signature)
        yield msgspec.json.encode(end) + b"\n"

    async def _lines(self) -> AsyncIterator[list[bytes]]:
        yield [msgspec.json.encode(self.header)]
        async for lines in self._sealed():
            yield lines
        async for lines in self._unsealed():
            yield lines

    async def _sealed(self) -> AsyncIterator[list[bytes]]:
        tenant_id = self.header.tenant_id
        place = (0, 0)
        while True:
            async with self._database.transaction(tenant_id) as tx:
                rows = await tx.fetch(
                    SQL.sealed, tenant_id, *place, self._extent.last_seal, ROWS_A_READ
                )
            texts = [text for row in rows for text in (row["entry"], row["seal"]) if text]
            yield [text.encode() for text in texts]
            if len(rows) < ROWS_A_READ:
                return
            place = rows[-1]["seal_no"], rows[-1]["transfer_id"]

    async def _unsealed(self) -> AsyncIterator[list[bytes]]:
        tenant_id = self.header.tenant_id
        extent = self._extent
        after = extent.sealed_through
        while True:
            async with self._database.transaction(tenant_id) as tx:
                rows = await tx.fetch(
                    SQL.unsealed, tenant_id, after, extent.last_seal, extent.snapshot, ROWS_A_READ
                )
            yield [row["entry"].encode() for row in rows]
            if len(rows) < ROWS_A_READ:
                return
            after = rows[-1]["transfer_id"]


async def begin(database: Database, tenant_id: UUID, signer: Signer) -> Export:
    """Fixes what the export holds; raises Refusal where there is no such tenant."""
    async with database.snapshot(tenant_id) as snapshot:
        row = await snapshot.fetchrow(SQL.begin, tenant_id)
        assert row is not None
        head = await seals.head(snapshot, tenant_id)
        balance = await ledger.balance(snapshot, tenant_id)
    header = HeaderLine(
        format=FORMAT,
        tenant_id=tenant_id,
        exported_at=row["exported_at"],
        public_key=signer.public_key,
        seal_no=head.seal_no,
        head=head.head,
        balance=sums_of(balance),
    )
    return Export(database, header, msgspec.convert(dict(row), Extent), signer)


def sums_of(balance: Balance) -> Sums:
    return Sums(
        available=balance.available,
        held=balance.held,
        charged=balance.charged_lifetime,
        refunded=balance.refunded,
        expired=balance.expired,
        granted=balance.granted,
        adjusted_out=balance.adjusted_out,
    )
