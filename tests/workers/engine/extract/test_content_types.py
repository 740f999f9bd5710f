"""What is read as a page and what is not."""

import pytest

from workers.engine.extract import content_types
from workers.engine.outcomes import FetchFailed

PAGE = b"<!doctype html><title>x</title>"


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (PAGE, "text/html; charset=utf-8", "html"),
        (PAGE, "Application/XHTML+XML", "html"),
        (PAGE, None, "html"),
        (PAGE, "application/octet-stream", "html"),
        (b"\xef\xbb\xbf\n <!-- c -->\n<HTML lang=en>", "", "html"),
        (b"<?xml version='1.0'?><html xmlns='x'>", None, "html"),
        (b"<?xml version='1.0'?><feed/>", None, "xml"),
        (PAGE, "text/plain", "text"),
        (b"plain", None, "text"),
        (b"\xff\xfea\0", None, "text"),
        (b"# x", "text/markdown", "markdown"),
        (b"a,b", "text/csv", "text"),
        (b"{}", "application/json", "json"),
        (b"{}", "application/ld+json", "json"),
        (b"<a/>", "text/xml", "xml"),
        (b"<a/>", "application/atom+xml;charset=utf-8", "xml"),
    ],
)
def test_a_text_is_of_the_kind_its_server_says(body, content_type, kind):
    assert content_types.kind_of(body, content_type) == kind


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (PAGE, "image/svg+xml"),
        (b"%PDF-1.7", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x00\x01\x02", None),
        (b"plain", "application/octet-stream"),
        (b"plain", "nonsense\x00type"),
        (b"GIF89a", "application/x-unheard-of"),
    ],
)
def test_anything_else_is_refused(body, content_type):
    with pytest.raises(FetchFailed) as refused:
        content_types.kind_of(body, content_type)
    assert refused.value.reason == "unsupported_content_type"
    assert "\0" not in refused.value.message
