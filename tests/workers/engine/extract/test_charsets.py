"""The text of a body, whatever it was written in."""

import codecs

import pytest

from workers.engine.extract import charsets

GREETING = "Съешь ещё этих мягких французских булок, да выпей чаю. "
JAPANESE = "これは日本語の文章です。文字コードを調べています。" * 8


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (codecs.BOM_UTF8 + "é".encode(), "text/html; charset=iso-8859-1", "é"),
        (codecs.BOM_UTF16_LE + "é".encode("utf-16-le"), None, "é"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), None, "é"),
        ("é€".encode("cp1252"), "text/html; charset=ISO-8859-1", "é€"),
        (GREETING.encode("cp1251"), 'text/html; charset="windows-1251"', GREETING),
        (JAPANESE.encode("cp932"), "text/html;charset=Shift_JIS", JAPANESE),
        ("é".encode(), "text/html", "é"),
        ("é".encode(), "text/html; charset=no-such", "é"),
        ("é".encode(), "text/html; charset=zlib", "é"),
        ("é".encode(), "text/html; charset=punycode", "é"),
        (b"a\0b", None, "ab"),
        (b"\xff\xfea\0\0\0b\0", None, "ab"),
        (b"", None, ""),
    ],
)
def test_a_mark_wins_over_the_header(body, content_type, text):
    assert charsets.decode(body, content_type) == text


@pytest.mark.parametrize(
    ("head", "text"),
    [
        ('<meta charset="windows-1251">', GREETING),
        ("<META http-equiv=Content-Type content='text/html; charset=windows-1251'>", GREETING),
        ('<?xml version="1.0" encoding="windows-1251"?>', GREETING),
        ("<!-- <meta charset=utf-8> --><meta charset=windows-1251>", GREETING),
    ],
)
def test_a_declaration_in_the_text_is_believed(head, text):
    body = head.encode() + text.encode("cp1251")
    assert charsets.decode(body, "text/html") == head + text


def test_a_declaration_of_utf_16_that_could_be_read_means_utf_8():
    body = '<meta charset="utf-16">é'.encode()
    assert charsets.decode(body, None).endswith("é")


def test_a_declaration_behind_the_first_kilobyte_is_not_looked_for():
    body = b" " * charsets.PRESCANNED_BYTES + b"<meta charset=windows-1251>" + "é".encode()
    assert charsets.decode(body, None).endswith("é")


@pytest.mark.parametrize(("text", "codec"), [(GREETING * 5, "cp1251"), (JAPANESE, "euc_jp")])
def test_what_nobody_declares_is_detected(text, codec):
    assert charsets.decode(text.encode(codec), None) == text


def test_bytes_that_fit_no_declaration_are_replaced():
    assert charsets.decode(b"a\xffb", "text/html; charset=utf-8") == "a\ufffdb"


@pytest.mark.parametrize("label", sorted(charsets.CODECS))
def test_every_label_names_a_codec_that_decodes_text(label):
    assert "plain" in charsets.decode(b"plain", f"text/plain; charset={label}") or (
        charsets.CODECS[label].startswith("utf-16")
    )
