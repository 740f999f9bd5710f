"""Same key and body: replay; same key, other body: conflict. What makes bodies the same."""

import hashlib
import re

import msgspec

from jobs import requests
from jobs.requests import JobRequest
from runtime.errors import Refusal

KEY = re.compile(r"[\x21-\x7e]{1,255}")


def request_hash(request: JobRequest) -> bytes:
    """SHA-256 of the kind and the body after defaults; how the JSON was written is no matter."""
    body = msgspec.json.encode(request, order="deterministic")
    return hashlib.sha256(requests.kind_of(request).encode() + b"\n" + body).digest()


def quoted_hash(request: JobRequest) -> bytes:
    """The hash of what a quote is for: the same request, whether it names the quote or not."""
    return request_hash(msgspec.structs.replace(request, quote_id=None))


def check_key(key: str) -> str:
    """The key itself; raises Refusal unless it is 1 to 255 visible ASCII characters."""
    if not KEY.fullmatch(key):
        raise Refusal(
            "invalid_request",
            "Idempotency-Key must be 1 to 255 visible ASCII characters.",
            errors=[{"path": "Idempotency-Key", "message": "1 to 255 visible ASCII characters"}],
            syntax=True,
        )
    return key
