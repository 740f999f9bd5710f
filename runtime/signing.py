"""Ed25519 signatures (RFC 8032) with a key derived from the secret key; checks them offline."""

import hashlib
import re
from typing import Literal

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ALGORITHM: Literal["ed25519"] = "ed25519"
SEED_BYTES = 32
KEY_ID_LENGTH = 16
INFO = b"pagetoll signing key 1"
PUBLIC_KEY = re.compile(r"[0-9a-f]{64}")
SIGNATURE = re.compile(r"[0-9a-f]{128}")


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """A signature in lower-case hexadecimal, and the first digits of its key's SHA-256."""

    key_id: str
    signature: str


class Signer:
    """Signs with the key that belongs to a secret; without a secret it signs nothing."""

    def __init__(self, secret: str) -> None:
        """Derives the seed by HKDF-SHA-256 (RFC 5869): the same secret is the same key."""
        self._key: Ed25519PrivateKey | None = None
        self.public_key: str | None = None
        if secret:
            derived = HKDF(algorithm=SHA256(), length=SEED_BYTES, salt=None, info=INFO)
            self._key = Ed25519PrivateKey.from_private_bytes(derived.derive(secret.encode()))
            self.public_key = self._key.public_key().public_bytes_raw().hex()

    @property
    def key_id(self) -> str | None:
        return None if self.public_key is None else key_id(self.public_key)

    def sign(self, purpose: str, message: bytes) -> Signature | None:
        """None where signing is off. One purpose's signature is none of another's."""
        if self._key is None or self.public_key is None:
            return None
        made = self._key.sign(_bound(purpose, message))
        return Signature(key_id=key_id(self.public_key), signature=made.hex())


def key_id(public_key: str) -> str:
    return hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:KEY_ID_LENGTH]


def is_signed(public_key: str, purpose: str, message: bytes, signature: str) -> bool:
    """Whether the key signed this message for this purpose; False for what is malformed."""
    if not PUBLIC_KEY.fullmatch(public_key) or not SIGNATURE.fullmatch(signature):
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(signature), _bound(purpose, message))
    except (InvalidSignature, ValueError):
        return False
    return True


def _bound(purpose: str, message: bytes) -> bytes:
    return purpose.encode() + b"\n" + message
