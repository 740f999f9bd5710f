"""What paths and queries hold: ids, times, cursors; a bad id is as unknown as a missing one."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Request
from litestar.params import Parameter
from msgspec import Meta

from gateway import problems
from jobs import idempotency
from jobs.status import JobNotFound
from runtime.errors import Refusal

LIMIT_MAX = 1_000
INDEX_MAX = 2_147_483_646
ENTRY_MAX = 9_223_372_036_854_775_806
YEAR_MIN = 1970
YEAR_MAX = 9998

Limit = Annotated[int, Parameter(ge=1, le=LIMIT_MAX, description="How many items at most.")]
After = Annotated[
    str | None, Parameter(max_length=200, description="The `next` of the list before.")
]
Time = Annotated[
    str | None,
    Parameter(
        max_length=64, description="RFC 3339, with its zone.", schema_extra={"format": "date-time"}
    ),
]

_ZONED = Annotated[datetime, Meta(tz=True)]


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a list is asked for."""

    after: str | None
    limit: int


def window(after: After = None, limit: Limit = 100) -> Window:
    return Window(after=after, limit=limit)


def job_id(text: str) -> UUID:
    """Raises JobNotFound for what is no id: nobody learns what ids look like."""
    return _uuid(text, JobNotFound)


def uuid_filter(name: str, text: str | None) -> UUID | None:
    if text is None:
        return None
    return _uuid(text, lambda: problems.invalid(name, "Expected an id"))


def tenant_id(text: str, not_found: Callable[[], Exception]) -> UUID:
    return _uuid(text, not_found)


def time(name: str, text: str | None) -> datetime | None:
    """A moment with its zone; raises Refusal `invalid_request` naming the parameter."""
    if text is None:
        return None
    refusal = problems.invalid(name, "Expected an RFC 3339 time with its zone")
    try:
        moment: datetime = msgspec.convert(text, _ZONED)
    except msgspec.ValidationError:
        raise refusal from None
    if not YEAR_MIN <= moment.year <= YEAR_MAX:
        raise refusal
    return moment


def index_cursor(text: str | None, *, start: int, end: int) -> int:
    """A cursor that is a number from `start`, its default; raises Refusal `invalid_cursor`."""
    if text is None:
        return start
    number = int(text) if text.removeprefix("-").isdecimal() and text.isascii() else end + 1
    if not start <= number <= end:
        raise _bad_cursor()
    return number


def number(name: str, text: str, *, end: int) -> int:
    """A whole number from 0; raises Refusal `invalid_request` naming the parameter."""
    if not (
        text.isascii() and text.isdecimal() and len(text) <= len(str(end)) and int(text) <= end
    ):
        raise problems.invalid(name, f"Expected a whole number from 0 to {end}")
    return int(text)


def uuid_cursor(text: str | None) -> UUID | None:
    """A cursor that is an id; raises Refusal `invalid_cursor`."""
    if text is None:
        return None
    return _uuid(text, _bad_cursor)


def idempotency_key(request: Request[Any, Any, Any]) -> str | None:
    """The header's one value; raises Refusal when it is malformed or sent twice."""
    sent = request.headers.getall("idempotency-key", [])
    if len(sent) > 1:
        raise problems.invalid("Idempotency-Key", "Send this header once", syntax=True)
    return idempotency.check_key(sent[0]) if sent else None


def _bad_cursor() -> Refusal:
    return Refusal("invalid_cursor", "The cursor in `after` is not one that a list gave.")


def _uuid(text: str, refusal: Callable[[], Exception]) -> UUID:
    try:
        value = UUID(text)
    except ValueError:
        raise refusal() from None
    if str(value) != text.lower():
        raise refusal()
    return value
