"""A page's links as checked absolute addresses, in the order in which they stand."""

import msgspec

from jobs import urls
from jobs.addresses import AddressPolicy
from jobs.urls import Target, UrlRefused
from workers.engine.extract import html
from workers.engine.extract.html import LexborHTMLParser, LexborNode

MAX_LINKS = 5_000
MAX_REFUSED_LINKS = 100
MAX_TEXT_CHARACTERS = 500
# A long base makes long addresses of short ones: so much may come of it in all.
MAX_BASE_CHARACTERS = 2_097_152
_LONG_TEXT_CHARACTERS = 4_096
# Schemes that a reader of the markdown may be offered besides http and https.
_HARMLESS = ("http:", "https:", "mailto:", "tel:")


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """`target` is where it leads, without a fragment; `rel` is lower-case words."""

    target: Target
    text: str
    rel: str = ""

    @property
    def url(self) -> str:
        return self.target.url

    @property
    def nofollow(self) -> bool:
        return bool(self.rel) and "nofollow" in self.rel.split()


class RefusedLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that may not be followed; `reason` is `invalid_url` or `blocked`."""

    href: str
    reason: str


class PageLinks(msgspec.Struct, frozen=True, kw_only=True):
    """`links` holds each address once; `truncated` says that the page has more than the limit."""

    links: tuple[Link, ...]
    refused: tuple[RefusedLink, ...]
    truncated: bool


class _Room(msgspec.Struct, kw_only=True):
    """What may still be read of long texts: links inside each other have the same ones."""

    unread: int = html.READ_CHARACTERS_MAX


def base_of(tree: LexborHTMLParser, url: Target, *, policy: AddressPolicy) -> Target:
    """The `<base href>` where it may be used, else the page's own address."""
    node = tree.css_first("base[href]")
    if node is None:
        return url
    return resolve(url, html.attribute(node, "href"), policy=policy) or url


def resolve(base: Target, href: str, *, policy: AddressPolicy) -> Target | None:
    """Where an href leads, or None for what cannot or may not be fetched."""
    try:
        return urls.resolve_link(base, href, policy=policy)
    except UrlRefused:
        return None


def find(
    tree: LexborHTMLParser, base: Target, *, policy: AddressPolicy, limit: int = MAX_LINKS
) -> PageLinks:
    """All links of `a` and `area`; script addresses are taken out of the tree on the way."""
    found: dict[str, Link] = {}
    room = _Room()
    limit = min(limit, MAX_BASE_CHARACTERS // len(base.url))
    refused: dict[str, RefusedLink] = {}
    seen: set[str] = set()
    truncated = False
    for node in tree.css("a[href],area[href]"):
        attributes = node.attributes
        href = attributes["href"] or ""
        if href in seen:
            _disarm(node, href)
            continue
        seen.add(href)
        if len(found) >= limit:
            truncated = True
            _disarm(node, href)
            continue
        try:
            target = urls.resolve_link(base, href, policy=policy)
        except UrlRefused as refusal:
            if len(refused) < MAX_REFUSED_LINKS:
                refused[href] = RefusedLink(href=href[: urls.URL_LIMIT_BYTES], reason=refusal.code)
            continue
        if target is None:
            _disarm(node, href)
        elif target.url not in found:
            rel = (attributes.get("rel") or "").lower()
            found[target.url] = Link(target=target, text=_text(node, room), rel=rel)
    return PageLinks(
        links=tuple(found.values()), refused=tuple(refused.values()), truncated=truncated
    )


def _disarm(node: LexborNode, href: str) -> None:
    if ":" in href and not href.lower().lstrip().startswith(_HARMLESS):
        spelt = "".join(href.split())
        if spelt.partition(":")[0].isalpha():
            del node.attrs["href"]


def _text(node: LexborNode, room: _Room) -> str:
    if room.unread <= 0:
        return ""
    whole = node.text()
    if len(whole) > _LONG_TEXT_CHARACTERS:
        room.unread -= len(whole)
    text = html.collapse(whole)
    if not text:
        image = node.css_first("img[alt]")
        text = html.collapse(html.attribute(image, "alt")) if image is not None else ""
    return text[:MAX_TEXT_CHARACTERS]
