"""Seals everything a test has written, and exports it as a customer would."""

from io import BytesIO
from uuid import UUID

from accounting import exports, seals, verification
from accounting.verification import Expected, Verified
from runtime.database import Database
from runtime.signing import Signer

SIGNER = Signer("a secret of the tests")
TURNS_MAX = 10_000


async def seal_all(system: Database) -> int:
    """Seals until nothing is left; how many entries that were.

    Any transaction on the server, also one of autovacuum, may hold entries back for a moment.
    """
    sealed = 0
    for _ in range(TURNS_MAX):
        sealed += await seals.seal_due(system)
        async with system.connection() as connection:
            if (await seals.backlog(connection)).entries == 0:
                return sealed
    raise AssertionError("something holds entries back")


async def exported(database: Database, tenant_id: UUID, signer: Signer = SIGNER) -> bytes:
    export = await exports.begin(database, tenant_id, signer)
    return b"".join([chunk async for chunk in export.chunks()])


def verify(file: bytes, **expected: object) -> Verified:
    return verification.verify(BytesIO(file), Expected(**expected))
