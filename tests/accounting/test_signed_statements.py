"""A signed statement is accepted as it is, and with no byte changed."""

import msgspec
import pytest

from accounting import signed_statements
from accounting.signed_statements import Rejected
from runtime.signing import Signer

SIGNER = Signer("a secret of this test")


def a_file(signer: Signer = SIGNER) -> bytes:
    statement = {"period": "2026-11", "closing": {"total": 12}, "ledger_head": {"head": "ab"}}
    signature = signed_statements.sign(statement, signer)
    return msgspec.json.encode(
        statement | {"signature": signature, "public_key": signer.public_key}
    )


def test_a_true_statement_is_accepted() -> None:
    document = signed_statements.check(a_file(), public_key=SIGNER.public_key)

    assert document["closing"] == {"total": 12}
    assert signed_statements.check(a_file() + b"\n", public_key=None) == document


def test_every_changed_byte_is_rejected() -> None:
    true = a_file()
    for place in range(len(true)):
        for mask in (1, 32):
            changed = true[:place] + bytes([true[place] ^ mask]) + true[place + 1 :]
            with pytest.raises(Rejected):
                signed_statements.check(changed, public_key=SIGNER.public_key)


def test_another_signer_is_rejected() -> None:
    other = Signer("another secret")
    with pytest.raises(Rejected, match="another key"):
        signed_statements.check(a_file(other), public_key=SIGNER.public_key)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"signature": null, "public_key": null}'])
def test_what_is_no_signed_statement_is_rejected(content: bytes) -> None:
    with pytest.raises(Rejected):
        signed_statements.check(content, public_key=None)


def test_without_a_secret_nothing_is_signed() -> None:
    assert signed_statements.sign({"period": "2026-11"}, Signer("")) is None
