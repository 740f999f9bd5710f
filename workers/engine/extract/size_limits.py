"""How large what a page becomes may be, next to the page itself."""

from workers.engine.outcomes import FetchFailed

TIMES_BODY = 4
ALWAYS_BYTES = 1_048_576
MOST_BYTES = 16_777_216
_UTF8_BYTES_MAX = 4  # of one character


def limit_bytes(body_bytes: int) -> int:
    """What one format may have in UTF-8: 4 times the body, at least 1 MiB, at most 16 MiB."""
    return min(max(TIMES_BODY * body_bytes, ALWAYS_BYTES), MOST_BYTES)


def check(text: str, limit: int) -> str:
    """The text itself; raises FetchFailed (`limit_reached`, `too_large`) over `limit` bytes."""
    if len(text) * _UTF8_BYTES_MAX > limit and _size(text) > limit:
        raise too_large("What the page becomes is many times larger than the page.")
    return text


def too_large(message: str) -> FetchFailed:
    """The failure of a page that has a fair size but asks for too much."""
    return FetchFailed("limit_reached", "too_large", message=message)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
