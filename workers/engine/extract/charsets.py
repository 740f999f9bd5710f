"""Bytes to text as browsers do it: mark, header, meta element, UTF-8, then a detector."""

import codecs
import re

import cchardet

PRESCANNED_BYTES = 1024
DETECTED_BYTES = 65_536

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_HEADER = re.compile(r"charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(
    rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([a-z0-9_:.+-]+)"
    rb"|<\?xml\s[^>]*?encoding\s*=\s*[\"']([a-z0-9_:.+-]+)",
    re.IGNORECASE,
)

# Only codecs that decode text in linear time; a label outside the table counts as not given.
# The superset that the Encoding standard prescribes stands for each label.
_SUPERSETS = {
    "cp1252": "iso-8859-1 iso8859-1 iso_8859-1 latin1 latin-1 l1 ascii us-ascii cp1252 x-cp1252",
    "cp1254": "iso-8859-9 iso8859-9 latin5 l5 cp1254",
    "cp874": "iso-8859-11 tis-620 dos-874",
    "gb18030": "gb18030 gbk gb2312 gb_2312-80 x-gbk chinese cp936 euc-cn hz-gb-2312",
    "big5hkscs": "big5 big5-hkscs cn-big5 x-x-big5 cp950",
    "cp932": "shift_jis shift-jis sjis x-sjis ms_kanji windows-31j cp932",
    "euc_jp": "euc-jp x-euc-jp",
    "iso2022_jp": "iso-2022-jp",
    "cp949": "euc-kr ks_c_5601-1987 ks_c_5601-1989 ksc5601 korean windows-949 cp949 uhc",
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8 utf-8-sig",
    "utf-16-le": "utf-16 utf-16le",
    "utf-16-be": "utf-16be",
    "koi8-r": "koi8-r koi8 koi8_r",
    "koi8-u": "koi8-u koi8-ru",
    "cp866": "ibm866 cp866 866",
    "mac-roman": "macintosh mac x-mac-roman",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian mac-cyrillic",
}
CODECS = {label: codec for codec, labels in _SUPERSETS.items() for label in labels.split()}
CODECS |= {f"iso-8859-{n}": f"iso8859-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)}
CODECS |= {f"iso8859-{n}": f"iso8859-{n}" for n in (2, 5, 7, 15)}
CODECS |= {f"windows-{n}": f"cp{n}" for n in range(1250, 1259)}
CODECS |= {f"cp{n}": f"cp{n}" for n in range(1250, 1259)} | {"windows-874": "cp874"}


def decode(body: bytes, content_type: str | None) -> str:
    """The body as text without a byte order mark and without NUL; never fails."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return _text(body[len(mark) :], codec)
    declared = _from_header(content_type) or _from_meta(body)
    return _text(body, declared) if declared else _undeclared(body)


def _from_header(content_type: str | None) -> str | None:
    found = _HEADER.search(content_type or "")
    return CODECS.get(found[1].lower()) if found else None


def _from_meta(body: bytes) -> str | None:
    found = _META.search(_COMMENT.sub(b"", body[:PRESCANNED_BYTES]))
    if found is None:
        return None
    codec = CODECS.get((found[1] or found[2]).decode("ascii").lower())
    # The declaration was read byte by byte, so the text cannot be UTF-16 (HTML, 13.2.3.2).
    return "utf-8" if codec and codec.startswith("utf-16") else codec


def _undeclared(body: bytes) -> str:
    try:
        return body.decode("utf-8").replace("\0", "")
    except UnicodeDecodeError:
        guess = cchardet.detect(body[:DETECTED_BYTES])["encoding"] or ""
        return _text(body, CODECS.get(guess.lower(), "cp1252"))


def _text(body: bytes, codec: str) -> str:
    return body.decode(codec, "replace").replace("\0", "")
