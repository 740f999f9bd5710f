"""Signatures: the same secret is the same key, and one purpose is not another."""

import pytest

from runtime import signing
from runtime.signing import Signer

SIGNER = Signer("secret")


def test_the_same_secret_is_the_same_key() -> None:
    assert Signer("secret").public_key == SIGNER.public_key
    assert Signer("another").public_key != SIGNER.public_key
    assert SIGNER.key_id == signing.key_id(SIGNER.public_key)


def test_a_signature_is_of_one_message_purpose_and_key() -> None:
    made = SIGNER.sign("statement", b"message")

    def fits(key: str, purpose: str, message: bytes, signature: str) -> bool:
        return signing.is_signed(key, purpose, message, signature)

    assert fits(SIGNER.public_key, "statement", b"message", made.signature)
    assert not fits(SIGNER.public_key, "statement", b"messages", made.signature)
    assert not fits(SIGNER.public_key, "export", b"message", made.signature)
    assert not fits(Signer("another").public_key, "statement", b"message", made.signature)


def test_without_a_secret_nothing_is_signed() -> None:
    off = Signer("")

    assert (off.public_key, off.key_id, off.sign("statement", b"message")) == (None, None, None)


@pytest.mark.parametrize("signature", ["", "zz", "00" * 63, "00" * 64, "0" * 127])
def test_what_is_no_signature_is_just_not_one(signature: str) -> None:
    assert not signing.is_signed(SIGNER.public_key, "statement", b"message", signature)
    assert not signing.is_signed(signature, "statement", b"message", "00" * 64)


def test_upper_case_is_another_text_and_no_signature() -> None:
    made = SIGNER.sign("statement", b"message").signature

    assert not signing.is_signed(SIGNER.public_key, "statement", b"message", made.upper())
