"""The body of an answer: read only if it may be a page, within a size and at a pace."""

import asyncio
import re
from collections.abc import AsyncIterable

import msgspec

from workers.engine.decoding import BodyDecoder
from workers.engine.outcomes import FetchFailed

_NEVER_A_PAGE = re.compile(r"(?:image|video|audio|font)/|application/(?:zip|pdf)\b", re.IGNORECASE)
_UNKNOWN_TYPE = re.compile(r"application/octet-stream\b", re.IGNORECASE)
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<")


class BodyRule(msgspec.Struct, frozen=True, kw_only=True):
    """How much to read: `cut` ends a longer body at the limit instead of refusing it."""

    limit_bytes: int
    cut: bool = False
    any_type: bool = False


class Pace:
    """Moves a deadline along with a body: its mean speed, after a while, must hold.

    A body that stands still is so given up as well, however much time is left in all.
    """

    def __init__(
        self, deadline: asyncio.Timeout, *, slow_after_seconds: float, bytes_per_second: int
    ) -> None:
        now = asyncio.get_running_loop().time()
        self._deadline = deadline
        self._hard_stop = deadline.when() or now
        self._rate = bytes_per_second
        self._stop = now + slow_after_seconds

    def received(self, count: int) -> None:
        self._stop += count / self._rate
        self._deadline.reschedule(min(self._hard_stop, self._stop))


async def read(
    chunks: AsyncIterable[bytes], headers: dict[str, str], rule: BodyRule, pace: Pace
) -> bytes | None:
    """The decoded body, or None where it cannot be a page by its type. Raises FetchFailed."""
    content_type = "" if rule.any_type else headers.get("content-type", "")
    if _NEVER_A_PAGE.match(content_type):
        return None
    _check_announced(headers.get("content-length", ""), rule)
    encoding = headers.get("content-encoding")
    decoder = BodyDecoder(encoding, limit_bytes=rule.limit_bytes, cut=rule.cut)
    unsure = _UNKNOWN_TYPE.match(content_type) is not None
    parts: list[bytes] = []
    pace.received(0)
    async for chunk in chunks:
        part = decoder.feed(chunk)
        if unsure and part:
            if not _MARKUP.match(part):
                return None
            unsure = False
        parts.append(part)
        if decoder.full:
            break
        pace.received(len(chunk))
    decoder.finish()
    return b"".join(parts)


def _check_announced(length: str, rule: BodyRule) -> None:
    if not rule.cut and length.isdigit() and int(length) > rule.limit_bytes:
        raise FetchFailed("limit_reached", "too_large")
