"""Every error as problem+json (RFC 9457) with a stable code and the request's id."""

from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import (
    HTTPException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)

from gateway import exchanges, metrics
from runtime.errors import Refusal, Unavailable

log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"

STATUS_OF = {
    "unauthenticated": 401,
    "insufficient_credits": 402,
    "budget_exhausted": 402,
    "forbidden": 403,
    "tenant_suspended": 403,
    "not_found": 404,
    "idempotency_conflict": 409,
    "invalid_state": 409,
    "result_expired": 410,
    "invalid_cursor": 400,
    "invalid_request": 422,
    "invalid_url": 422,
    "blocked": 422,
    "unsupported_filter": 422,
    "unknown_source": 422,
    "rate_limited": 429,
    "internal_error": 500,
    "backend_unavailable": 503,
}
TITLES = {
    "unauthenticated": "The API key is missing or not valid",
    "insufficient_credits": "Not enough credits",
    "budget_exhausted": "A cap would be overdrawn",
    "forbidden": "The key lacks a scope",
    "tenant_suspended": "The tenant is suspended",
    "not_found": "Not found",
    "idempotency_conflict": "The key was used for something else",
    "invalid_state": "Not possible in this state",
    "result_expired": "The results are no longer kept",
    "invalid_cursor": "The cursor is not valid",
    "invalid_request": "The request is not valid",
    "invalid_url": "The URL is not valid",
    "blocked": "The URL may not be fetched",
    "unsupported_filter": "The filter is not supported",
    "unknown_source": "The source is not known",
    "rate_limited": "Too many requests",
    "internal_error": "Something went wrong here",
    "backend_unavailable": "A part of the service is away",
}
BODY = "data"
"""What the framework names as missing where a body is empty; else bodies.py decodes them."""
NAMES_OF = {"job_state": "state", "wanted_state": "state", "form": "format", "start": "from"}
"""Parameters that a handler has to call by another name than the caller does."""
SYNTAX_STATUS = 400
FIRST_SERVER_STATUS = 500


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the request and what is wrong there."""

    path: str
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a request that was refused or failed; some codes have members besides."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    errors: list[FieldError] = []


def render(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The one exception handler: whatever was raised, this is what the caller sees of it."""
    headers: dict[str, str] = {}
    if isinstance(error, Unavailable):
        headers["Retry-After"] = str(error.retry_after_seconds)
        log.warning("backend_unavailable", why=str(error))
        refusal = Refusal("backend_unavailable", "The service is not complete now; try again soon.")
        return answer(request, refusal, headers=headers)
    if isinstance(error, HTTPException) and error.status_code < FIRST_SERVER_STATUS:
        return answer(
            request,
            refusal_of(error),
            status=None if isinstance(error, ValidationException) else error.status_code,
            headers=dict(error.headers or {}),
        )
    if not isinstance(error, Refusal) or error.code not in STATUS_OF:
        log.error("request_failed", exc_info=error)
        error = Refusal("internal_error", "The request failed; its request_id finds the reason.")
    return answer(request, error, headers=headers)


def answer(
    request: Request[Any, Any, Any],
    refusal: Refusal,
    *,
    status: int | None = None,
    headers: dict[str, str],
) -> Response[bytes]:
    """The refusal as a problem; `syntax` in its details means 400 and is no member."""
    details = dict(refusal.details)
    is_syntax = details.pop("syntax", False)
    if status is None:
        status = SYNTAX_STATUS if is_syntax else STATUS_OF[refusal.code]
    if refusal.code == "unauthenticated":
        headers["WWW-Authenticate"] = "Bearer"
    if refusal.code == "rate_limited":
        headers["Retry-After"] = str(details["retry_after_seconds"])
    if refusal.code == "invalid_request" and not details.get("errors"):
        details["errors"] = [{"path": "$", "message": refusal.message}]
    metrics.REFUSALS.labels(refusal.code).inc()
    body = {
        "type": f"/problems/{refusal.code}",
        "title": TITLES[refusal.code],
        "status": status,
        "detail": refusal.message,
        "code": refusal.code,
        "request_id": exchanges.of(request.scope).request_id,
        **details,
    }
    return Response(
        msgspec.json.encode(body), status_code=status, media_type=MEDIA_TYPE, headers=headers
    )


def refusal_of(error: HTTPException) -> Refusal:
    """The framework's own refusals in our words; they tell nothing of what was sent."""
    if isinstance(error, NotFoundException):
        return Refusal("not_found", "There is nothing at this path.")
    if isinstance(error, MethodNotAllowedException):
        return invalid("$", "The method is not one that this path has")
    if isinstance(error, ValidationException):
        found: Any = error.extra or []
        if any(one.get("key") == BODY for one in found):
            return invalid("$", "The body must be a JSON object", syntax=True)
        return invalid_all([(_path(one), one["message"]) for one in found])
    if error.status_code == 413:  # noqa: PLR2004 - Content Too Large
        return invalid("$", "The body is too large")
    return invalid("$", "The request cannot be read")


def invalid(path: str, message: str, *, syntax: bool = False) -> Refusal:
    """A refusal of one place in the request; `syntax` is 400, else 422."""
    return invalid_all([(path, message)], syntax=syntax)


def invalid_all(faults: list[tuple[str, str]], *, syntax: bool = False) -> Refusal:
    faults = faults or [("$", "The request is not valid")]
    path, message = faults[0]
    detail = f"{message}." if path == "$" else f"{path}: {message}."
    errors = [FieldError(path=path, message=message) for path, message in faults]
    details = {"syntax": True} if syntax else {}
    return Refusal("invalid_request", detail, errors=errors, **details)


def _path(fault: dict[str, Any]) -> str:
    key = str(fault.get("key") or "$")
    return NAMES_OF.get(key, key)
