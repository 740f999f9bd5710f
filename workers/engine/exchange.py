"""One answered request, and what its status means for a page."""

from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime

import msgspec

from jobs.urls import Target
from runtime import clock
from workers.engine.outcomes import FetchFailed

RETRY_AFTER_SECONDS = (1.0, 3600.0)

_SINGLE_HEADERS = frozenset({"content-type", "location", "retry-after"})
_MISSING = frozenset({404, 410})
_FORBIDDEN = frozenset({401, 403, 451})
_TOO_MANY_REQUESTS = 429
_REQUEST_TIMEOUT = 408
_FIRST_SERVER_ERROR = 500
_SUCCESS = range(200, 300)
_PARTIAL_CONTENT = 206


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One answered request; header names are lower-case, `body` is decoded.

    `body_read` is False where the body was left alone for its type. An error page and a
    redirect carry the first 64 KiB of theirs at most.
    `hops` are the URLs that redirected on the way to `url`.
    """

    url: Target
    status: int
    headers: dict[str, str]
    body: bytes
    location: str | None = None
    body_read: bool = True
    hops: tuple[str, ...] = ()


def status_failure(exchange: Exchange) -> FetchFailed | None:
    """Why a status is no page; None for 2xx. Retry-After is kept, from 1 to 3,600 seconds."""
    status = exchange.status
    if status in _SUCCESS:
        return _emptiness(exchange)
    message = f"The site answered {status}."
    if status in _MISSING:
        return FetchFailed("not_found", message=message)
    if status in _FORBIDDEN:
        return FetchFailed("blocked", message=message)
    return FetchFailed(
        "rate_limited" if status == _TOO_MANY_REQUESTS else "upstream_error",
        message=message,
        retryable=status in (_TOO_MANY_REQUESTS, _REQUEST_TIMEOUT) or status >= _FIRST_SERVER_ERROR,
        retry_after_seconds=_retry_after(exchange.headers.get("retry-after")),
    )


def _emptiness(exchange: Exchange) -> FetchFailed | None:
    """An answer of success that holds no whole page is none; nobody pays for it."""
    if exchange.status == _PARTIAL_CONTENT:
        return FetchFailed("upstream_error", "partial", message="The site sent a part of a page.")
    if exchange.body_read and not exchange.body.strip():
        return FetchFailed("upstream_error", "empty_shell", message="The site sent no content.")
    return None


def fold_headers(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Lower-case names; repeated fields are joined by commas (RFC 9110, 5.2)."""
    headers: dict[str, str] = {}
    for name, value in fields:
        key = name.lower()
        text = value if value.isascii() else _without_surrogates(value)
        if key not in headers:
            headers[key] = text
        elif key not in _SINGLE_HEADERS:
            headers[key] = f"{headers[key]}, {text}"
    return headers


def _without_surrogates(value: str) -> str:
    """Bytes that are no UTF-8 came in as lone surrogates, which no text may hold."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _retry_after(text: str | None) -> float | None:
    """RFC 9110, 10.2.3; None where the header says nothing useful."""
    if not text:
        return None
    seconds = float(text) if text.isascii() and text.isdigit() else _seconds_until(text)
    if seconds is None:
        return None
    shortest, longest = RETRY_AFTER_SECONDS
    return min(max(seconds, shortest), longest)


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - clock.now()).total_seconds()
