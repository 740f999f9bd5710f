"""Statements that prove themselves: signed whole, and checked offline from the file alone."""

from typing import Any

import msgspec

from runtime import signing
from runtime.signing import Signature, Signer

PURPOSE = "pagetoll statement 1"
OUTSIDE = frozenset({"signature", "public_key"})
"""What is not under the signature; a key is worth what its reader compares it with."""


class Rejected(Exception):
    """A statement that was changed, was signed by another key, or was not signed."""


def sign(statement: object, signer: Signer) -> Signature | None:
    """The signature of a statement as JSON; None where the installation has no key."""
    return signer.sign(PURPOSE, message_of(msgspec.to_builtins(statement)))


def check(content: bytes, *, public_key: str | None) -> dict[str, Any]:
    """The statement of a file; raises Rejected. Without `public_key` the file's own is used."""
    try:
        document = msgspec.json.decode(content, type=dict[str, Any])
        signature = msgspec.convert(document["signature"], Signature)
        own_key = msgspec.convert(document["public_key"], str)
    except (msgspec.MsgspecError, KeyError) as error:
        raise Rejected("this is no signed statement") from error
    if msgspec.json.encode(document) != content.strip():
        raise Rejected("the file is not written as it was signed")
    key = public_key or own_key
    if key != own_key or signature.key_id != signing.key_id(own_key):
        raise Rejected("another key signed it")
    if not signing.is_signed(key, PURPOSE, message_of(document), signature.signature):
        raise Rejected("its signature does not fit its content")
    return document


def message_of(document: dict[str, Any]) -> bytes:
    """What is signed: the statement without signature and key, its names in order."""
    signed = {name: value for name, value in document.items() if name not in OUTSIDE}
    return msgspec.json.encode(signed, order="deterministic")
