"""An export proves itself offline: the true one passes, one changed byte anywhere does not."""

import hashlib

import msgspec
import pytest

from accounting import export_lines, exports, seals
from accounting.export_lines import EndLine
from accounting.verification import Rejected
from runtime.database import Database
from runtime.signing import Signature, Signer
from tests.support import builders, sealing, work

STRANGER = Signer("a stranger's secret")


async def some_export(app: Database, system: Database, **options) -> tuple[bytes, object]:
    """Two seals, a tail that is not sealed, and a tenant with charges, releases and a refill."""
    tenant = await builders.a_tenant(system, credits=100)
    await sealing.seal_all(system)
    job_id = await builders.a_job(app, tenant.tenant_id, max_pages=5)
    async with system.connection() as connection:
        run = await builders.claimed(connection, job_id)
        await builders.finished_pages(connection, run, ["succeeded", "failed", "succeeded"])
    await sealing.seal_all(system)
    await work.finish(system, run)
    await builders.a_grant(system, tenant.tenant_id, 7, meta={"note": "für Ümläute ☃"})
    return await sealing.exported(app, tenant.tenant_id, **options), tenant.tenant_id


def changed(file: bytes, place: int, mask: int) -> bytes:
    return file[:place] + bytes([file[place] ^ mask]) + file[place + 1 :]


async def test_the_true_export_passes_and_tells_the_balance(
    app: Database, system: Database
) -> None:
    file, tenant_id = await some_export(app, system)

    verified = sealing.verify(file, public_key=sealing.SIGNER.public_key)

    balance = await builders.balance_of(system, tenant_id)
    assert verified.tenant_id == tenant_id
    assert verified.balance == exports.sums_of(balance)
    assert (verified.balance.available, verified.balance.charged) == (105, 2)
    assert verified.signed
    assert (verified.seal_no, verified.sealed > 2, verified.unsealed > 0) == (2, True, True)


async def test_no_byte_can_be_changed(app: Database, system: Database) -> None:
    file, _ = await some_export(app, system)

    passed = []
    for place in range(len(file)):
        for mask in (0x01, 0x20, 0x80):
            try:
                sealing.verify(changed(file, place, mask))
            except Rejected:
                continue
            passed.append((place, mask))

    assert passed == []


async def test_no_line_can_be_left_out_doubled_or_moved(app: Database, system: Database) -> None:
    file, _ = await some_export(app, system)
    lines = file.splitlines(keepends=True)

    for number in range(len(lines)):
        for other in (
            lines[:number] + lines[number + 1 :],
            [*lines[: number + 1], *lines[number:]],
            [*lines[:number], *lines[number : number + 2][::-1], *lines[number + 2 :]],
        ):
            if other != lines:
                with pytest.raises(Rejected):
                    sealing.verify(b"".join(other))
    for length in (0, 1, len(file) // 2, len(file) - 1):
        with pytest.raises(Rejected):
            sealing.verify(file[:length])


async def test_a_forger_who_hashes_and_signs_anew_is_told_by_key_and_head(
    app: Database, system: Database
) -> None:
    file, tenant_id = await some_export(app, system)
    async with app.transaction(tenant_id) as tx:
        kept = await seals.head(tx, tenant_id)
    forged = resigned(file.replace("für Ümläute".encode(), b"fur Umlaute"))

    assert sealing.verify(forged).signed  # with a key of his own, and only in what no seal holds
    with pytest.raises(Rejected, match="not the one you named"):
        sealing.verify(forged, public_key=sealing.SIGNER.public_key)
    assert sealing.verify(file, heads={kept.seal_no: kept.head, 0: origin_of(tenant_id)})
    for heads in ({1: kept.head}, {kept.seal_no + 1: kept.head}, {0: kept.head}):
        with pytest.raises(Rejected):
            sealing.verify(file, heads=heads)


async def test_what_a_seal_holds_cannot_be_changed_even_by_who_can_sign(
    app: Database, system: Database
) -> None:
    file, _ = await some_export(app, system)

    with pytest.raises(Rejected, match="seal 1 is not the hash"):
        sealing.verify(
            resigned(file.replace(b'"op_key" : "grant:test:', b'"op_key" : "grant:Test:', 1))
        )


async def test_sums_that_do_not_add_up_are_rejected_although_signed(
    app: Database, system: Database
) -> None:
    file, _ = await some_export(app, system)

    with pytest.raises(Rejected, match="add up"):
        sealing.verify(resigned(file.replace(b'"available":105', b'"available":106')))


async def test_without_a_secret_an_export_is_hashed_and_passes_only_when_permitted(
    app: Database, system: Database
) -> None:
    file, _ = await some_export(app, system, signer=Signer(""))

    with pytest.raises(Rejected, match="not signed"):
        sealing.verify(file)
    assert not sealing.verify(file, unsigned=True).signed
    with pytest.raises(Rejected):
        sealing.verify(changed(file, len(file) // 2, 1), unsigned=True)


async def test_a_signature_cannot_be_stripped(app: Database, system: Database) -> None:
    file, _ = await some_export(app, system)
    end = msgspec.json.decode(file.splitlines()[-1], type=EndLine)
    bare = msgspec.json.encode(msgspec.structs.replace(end, signature=None)) + b"\n"
    stripped = b"".join([*file.splitlines(keepends=True)[:-1], bare])

    with pytest.raises(Rejected, match="not signed"):
        sealing.verify(stripped, unsigned=True)


async def test_entries_of_later_transactions_are_not_in_an_export(
    app: Database, system: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "ROWS_A_READ", 2)
    tenant = await builders.a_tenant(system, credits=5)
    await sealing.seal_all(system)
    for _ in range(4):
        await builders.a_grant(system, tenant.tenant_id, 1)
    export = await exports.begin(app, tenant.tenant_id, sealing.SIGNER)

    chunks = []
    async for chunk in export.chunks():
        chunks.append(chunk)
        await builders.a_grant(system, tenant.tenant_id, 100)
        await sealing.seal_all(system)

    verified = sealing.verify(b"".join(chunks))
    assert (verified.sealed, verified.unsealed, verified.balance.available) == (1, 4, 9)


async def test_a_tenant_without_entries_has_an_export(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system)

    verified = sealing.verify(await sealing.exported(app, tenant.tenant_id))

    assert (verified.sealed, verified.unsealed, verified.seal_no) == (0, 0, 0)


def origin_of(tenant_id) -> str:
    return export_lines.origin(tenant_id)


def resigned(file: bytes) -> bytes:
    """The same lines with a right digest, signed by a stranger who names his key in the header."""
    body = b"".join(file.splitlines(keepends=True)[:-1]).replace(
        sealing.SIGNER.public_key.encode(), STRANGER.public_key.encode()
    )
    digest = hashlib.sha256(body)
    signature = STRANGER.sign(exports.PURPOSE, digest.digest())
    assert isinstance(signature, Signature)
    end = EndLine(lines=body.count(b"\n"), sha256=digest.hexdigest(), signature=signature)
    return body + msgspec.json.encode(end) + b"\n"
