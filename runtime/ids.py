"""Time-ordered ids (UUIDv7, RFC 9562) and unguessable secrets."""

import hashlib
import os
import secrets
import time
import uuid

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def new_id() -> uuid.UUID:
    """A UUIDv7: 48 bits of milliseconds, then 74 random bits (RFC 9562, section 5.7)."""
    value = int.from_bytes(os.urandom(10), "big")
    value |= (time.time_ns() // 1_000_000) << 80
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    return uuid.UUID(int=value)


def random_text(length: int) -> str:
    """Random base-62 text; 43 characters carry 256 bits."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def digest(text: str) -> bytes:
    """SHA-256 of a secret. A fast hash is right for secrets of 256 random bits."""
    return hashlib.sha256(text.encode()).digest()
