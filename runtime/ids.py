"""Time-ordered ids (UUIDv7, RFC 9562) and unguessable secrets."""

import hashlib
import os
import secrets
import threading
import time
import uuid

TICKS_PER_MS = 4_096
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class _Ticks:
    """Quarter-microseconds since 1970 that never come twice, nor go back, in this process."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def next(self) -> int:
        now = time.time_ns() * TICKS_PER_MS // 1_000_000
        with self._lock:
            self._last = max(now, self._last + 1)
            return self._last


_TICKS = _Ticks()


def new_id() -> uuid.UUID:
    """A UUIDv7 (RFC 9562, section 5.7), later than every one that this process made before.

    48 bits of milliseconds, 12 bits of their fraction (section 6.2, method 3), 62 random bits.
    """
    milliseconds, fraction = divmod(_TICKS.next(), TICKS_PER_MS)
    value = milliseconds << 80 | 0x7 << 76 | fraction << 64
    value |= 0x2 << 62 | int.from_bytes(os.urandom(8), "big") >> 2
    return uuid.UUID(int=value)


def random_text(length: int) -> str:
    """Random base-62 text; 43 characters carry 256 bits."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def digest(text: str) -> bytes:
    """SHA-256 of a secret. A fast hash is right for secrets of 256 random bits."""
    return hashlib.sha256(text.encode()).digest()
