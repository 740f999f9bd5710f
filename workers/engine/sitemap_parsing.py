"""The addresses in one sitemap, index, feed or list of lines, whatever it claims to be."""

import re
from xml.parsers import expat

import msgspec

from workers.engine.decoding import BodyDecoder

MAX_ADDRESS_CHARACTERS = 4_096  # longer ones are cut, and then refused as addresses
MAX_ELEMENT_DEPTH = 64
_STEP_BYTES = 65_536

_GZIP_MAGIC = b"\x1f\x8b"
_BEGINS_AS_XML = re.compile(rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?\s*\0?<")
_LINE_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
# (the element, what holds it): where an address stands as text. Some leave the loc out.
_PAGE_TEXTS = frozenset({("loc", "url"), ("url", "urlset"), ("link", "item")})
_CHILD_TEXTS = frozenset({("loc", "sitemap"), ("sitemap", "sitemapindex")})


class ParsedSitemap(msgspec.Struct, kw_only=True):
    """`malformed` says that it could not be read to its end: what was read before is kept."""

    pages: list[str] = []
    children: list[str] = []
    truncated: bool = False
    malformed: bool = False


class _Enough(Exception):
    """The limit of addresses is reached."""


class _Refused(Exception):
    """A document type or an entity, or nesting that no sitemap has."""


def parse(body: bytes, *, max_addresses: int, limit_bytes: int) -> ParsedSitemap:
    """Raises FetchFailed where a compressed body is too large or cannot be unpacked."""
    truncated = len(body) >= limit_bytes
    if body.startswith(_GZIP_MAGIC):
        body, truncated = _unpack(body, limit_bytes)
    if _BEGINS_AS_XML.match(body):
        parsed = _Reader(max_addresses).read(body)
    else:
        parsed = _parse_lines(body, max_addresses)
    # The cut is why the document has no end.
    parsed.malformed = parsed.malformed and not truncated
    parsed.truncated = parsed.truncated or truncated
    return parsed


def _unpack(body: bytes, limit_bytes: int) -> tuple[bytes, bool]:
    decoder = BodyDecoder("gzip", limit_bytes=limit_bytes, cut=True)
    pieces = []
    for start in range(0, len(body), _STEP_BYTES):
        pieces.append(decoder.feed(body[start : start + _STEP_BYTES]))
        if decoder.full:
            break
    return b"".join(pieces), decoder.full


def _parse_lines(body: bytes, max_addresses: int) -> ParsedSitemap:
    parsed = ParsedSitemap()
    for line in body.decode("utf-8-sig", "replace").splitlines():
        address = line.strip()
        if not _LINE_ADDRESS.fullmatch(address):
            continue
        if len(parsed.pages) >= max_addresses:
            parsed.truncated = True
            break
        parsed.pages.append(address[:MAX_ADDRESS_CHARACTERS])
    parsed.malformed = not parsed.pages and bool(body.strip())
    return parsed


class _Reader:
    """Reads XML of every kind by the names around an address, in any namespace."""

    def __init__(self, max_addresses: int) -> None:
        self._parsed = ParsedSitemap()
        self._left = max_addresses
        self._path: list[str] = []
        self._into: list[str] | None = None
        self._text = ""
        self._known_root = False

    def read(self, body: bytes) -> ParsedSitemap:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        try:
            # All at once: an expat before 2.6 reads a token anew with each piece of it.
            parser.Parse(body.lstrip(), True)
        except _Enough:
            self._parsed.truncated = True
        except (expat.ExpatError, _Refused, UnicodeError):
            self._parsed.malformed = True
        self._parsed.malformed = self._parsed.malformed or not self._known_root
        return self._parsed

    def _start(self, spelt: str, attributes: dict[str, str]) -> None:
        name = spelt.rpartition(":")[2].lower()
        parent = self._path[-1] if self._path else ""
        if not parent:
            self._known_root = name in ("urlset", "sitemapindex", "rss", "rdf", "feed")
        self._path.append(name)
        if len(self._path) > MAX_ELEMENT_DEPTH:
            raise _Refused
        self._text = ""
        self._into = None
        if (name, parent) in _PAGE_TEXTS and attributes.get("rel") is None:
            self._into = self._parsed.pages
        elif (name, parent) in _CHILD_TEXTS:
            self._into = self._parsed.children
        elif (name, parent) == ("link", "entry") and attributes.get("rel", "alternate") == (
            "alternate"
        ):
            self._add(attributes.get("href", ""), self._parsed.pages)

    def _characters(self, text: str) -> None:
        if self._into is not None and len(self._text) < MAX_ADDRESS_CHARACTERS:
            self._text += text[:MAX_ADDRESS_CHARACTERS]

    def _end(self, _: str) -> None:
        self._path.pop()
        if self._into is not None:
            self._add(self._text, self._into)
            self._into = None

    def _add(self, address: str, into: list[str]) -> None:
        address = address.strip()[:MAX_ADDRESS_CHARACTERS]
        if not address:
            return
        if self._left <= 0:
            raise _Enough
        self._left -= 1
        into.append(address)

    def _refuse(self, *_: object) -> None:
        raise _Refused
