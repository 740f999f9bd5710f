"""Which kind of text a body is, by its header and, where that is silent, by its first bytes."""

import re
from typing import Literal

from workers.engine.outcomes import FetchFailed

Kind = Literal["html", "text", "markdown", "json", "xml"]

SNIFFED_BYTES = 1024
CHECKED_CHARACTERS = 1_024
_TEXT_PER_CONTROL = 50  # ordinary characters that a text has at least for each control character
_STRAY_CONTROLS = 3

_KINDS: dict[str, Kind] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "application/json": "json",
    "application/ndjson": "text",
    "application/x-ndjson": "text",
    "application/yaml": "text",
    "application/javascript": "text",
    "application/xml": "xml",
    "text/xml": "xml",
}
# Servers say these when they do not know.
_UNKNOWN = frozenset({"", "application/octet-stream", "application/unknown", "unknown/unknown"})
_MARKUP = re.compile(
    # Possessive: comments must not be divided in every way when no element follows them.
    rb"(?:<!--.*?-->|\s|\xef\xbb\xbf)*+<(?:!doctype\s+html|html|head|body|title|meta|script|style"
    rb"|div|table|h1|p|a|br)[\s>/]",
    re.IGNORECASE | re.DOTALL,
)
_XML = re.compile(rb"(?:\xef\xbb\xbf)?\s*<\?xml")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CONTROLS = re.compile(r"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
_BINARY_MARKS = (b"%PDF-", b"PK\x03\x04", b"\x89PNG\r\n", b"\x1f\x8b\x08", b"\xff\xd8\xff")


def media_type(content_type: str | None) -> str:
    """The type and subtype of a Content-Type value, lower-case, without parameters."""
    return (content_type or "").partition(";")[0].strip().lower()


def kind_of(body: bytes, content_type: str | None) -> Kind:
    """Raises FetchFailed (`unsupported_content_type`) for what is not read as text."""
    named = media_type(content_type)
    if named in _UNKNOWN:
        return _sniff(body[:SNIFFED_BYTES], named)
    kind = _KINDS.get(named) or _kind_of_family(named)
    if kind is None:
        raise _unsupported(named)
    return kind


def check_text(body: bytes, text: str, kind: Kind) -> None:
    """Raises FetchFailed (`unsupported_content_type`, `binary`) for bytes sent as a text's.

    Of a page's text only the beginning is looked at, of the others all.
    """
    looked_at = [text[:CHECKED_CHARACTERS]] if kind == "html" else [text[:CHECKED_CHARACTERS], text]
    if body.startswith(_BINARY_MARKS) or any(map(_is_binary, looked_at)):
        raise binary()


def binary() -> FetchFailed:
    """The failure of what calls itself a text and is none."""
    return FetchFailed(
        "unsupported_content_type", "binary", message="The body is no text, whatever its type says."
    )


def _is_binary(text: str) -> bool:
    return len(_CONTROLS.findall(text)) > max(_STRAY_CONTROLS, len(text) // _TEXT_PER_CONTROL)


def _kind_of_family(named: str) -> Kind | None:
    if named.endswith("+json"):
        return "json"
    if named.startswith("text/"):
        return "text"
    if named.endswith("+xml") and named.startswith("application/"):
        return "xml"
    return None


def _sniff(head: bytes, named: str) -> Kind:
    if _MARKUP.match(head):
        return "html"
    if _XML.match(head):
        return "html" if b"<html" in head else "xml"
    is_text = head.startswith(_UTF16_MARKS) or not _BINARY.search(head)
    if named or not is_text:
        raise _unsupported(named)
    return "text"


def _unsupported(named: str) -> FetchFailed:
    shown = named if named.isascii() and named.isprintable() else ""
    what = f"of type {shown[:100]}" if shown else "of an unknown type"
    return FetchFailed(
        "unsupported_content_type", message=f"The body is {what}, which is not read as a page."
    )
