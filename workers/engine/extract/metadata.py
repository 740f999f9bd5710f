"""What a page says about itself in its head: title, description, canonical, robots, cards."""

import msgspec

from jobs.addresses import AddressPolicy
from jobs.urls import Target
from workers.engine.extract import html, links
from workers.engine.extract.html import LexborHTMLParser, LexborNode

MAX_VALUE_CHARACTERS = 2_000
MAX_CARD_VALUES = 100
MAX_ALTERNATES = 100
_PLAIN_NAMES = frozenset({"description", "keywords", "author", "generator"})
_CARD_PREFIXES = ("og:", "article:", "twitter:")

_Attributes = dict[str, str | None]


class PageMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """`values` is what a caller is shown; the other fields steer the crawl."""

    title: str | None
    canonical: str | None
    noindex: bool
    nofollow: bool
    values: dict[str, object]


class _Gathered(msgspec.Struct, kw_only=True):
    """What the head's elements said, first come first kept."""

    title: str = ""
    canonical: str = ""
    alternates: list[_Attributes] = []
    directives: list[str] = []
    plain: dict[str, str] = {}
    cards: dict[str, str] = {}


def read(tree: LexborHTMLParser, base: Target, *, policy: AddressPolicy) -> PageMetadata:
    found = _gather(tree)
    title = found.title or _heading(tree) or found.cards.get("og:title")
    canonical = links.resolve(base, found.canonical, policy=policy) if found.canonical else None
    directives = ", ".join(found.directives)
    noindex, nofollow = robots_directives(directives)
    # The order is the order of the answer; what the page does not say is absent.
    values: dict[str, object] = {
        "title": title,
        **found.plain,
        "language": _language(tree),
        "canonical": canonical.url if canonical is not None else None,
        "robots": directives[:MAX_VALUE_CHARACTERS],
        "open_graph": found.cards,
        "alternates": _alternates(found.alternates, base, policy),
    }
    return PageMetadata(
        title=title,
        canonical=canonical.url if canonical is not None else None,
        noindex=noindex,
        nofollow=nofollow,
        values={name: value for name, value in values.items() if value},
    )


def robots_directives(text: str) -> tuple[bool, bool]:
    """(noindex, nofollow) of a robots meta element, or of an X-Robots-Tag header for everyone."""
    words = {word.strip().lower() for word in text.split(",")}
    return bool(words & {"noindex", "none"}), bool(words & {"nofollow", "none"})


def _gather(tree: LexborHTMLParser) -> _Gathered:
    found = _Gathered()
    # The whole tree is searched, once: one stray element ends a head early.
    for node in tree.css("title,meta[content],link[rel][href]"):
        tag = node.tag
        if tag == "meta":
            _gather_meta(node.attributes, found)
        elif tag == "link":
            _gather_link(node.attributes, found)
        elif not found.title and _names_the_page(node):
            found.title = html.collapse(node.text())[:MAX_VALUE_CHARACTERS]
    return found


def _names_the_page(node: LexborNode) -> bool:
    """A drawing has a title element too."""
    return node.parent is not None and node.parent.tag in ("head", "body")


def _gather_meta(attributes: _Attributes, found: _Gathered) -> None:
    name = (attributes.get("name") or attributes.get("property") or "").strip().lower()
    content = html.collapse(attributes["content"] or "")[:MAX_VALUE_CHARACTERS]
    if not content:
        return
    if name == "robots":
        found.directives.append(content)
    elif name in _PLAIN_NAMES:
        found.plain.setdefault(name, content)
    elif name.startswith(_CARD_PREFIXES) and len(found.cards) < MAX_CARD_VALUES:
        found.cards.setdefault(name, content)


def _gather_link(attributes: _Attributes, found: _Gathered) -> None:
    rel = (attributes["rel"] or "").lower().split()
    if "canonical" in rel and not found.canonical:
        found.canonical = attributes["href"] or ""
    elif "alternate" in rel and len(found.alternates) < MAX_ALTERNATES:
        found.alternates.append(attributes)


def _heading(tree: LexborHTMLParser) -> str | None:
    node = tree.css_first("h1")
    text = html.collapse(node.text()) if node is not None else ""
    return text[:MAX_VALUE_CHARACTERS] or None


def _language(tree: LexborHTMLParser) -> str:
    root = tree.root
    return html.attribute(root, "lang")[:35] if root is not None else ""


def _alternates(
    nodes: list[_Attributes], base: Target, policy: AddressPolicy
) -> list[dict[str, str]]:
    alternates = []
    for attributes in nodes:
        target = links.resolve(base, attributes["href"] or "", policy=policy)
        if target is not None:
            named = {key: (attributes.get(key) or "")[:100] for key in ("hreflang", "type")}
            alternates.append({"url": target.url} | {k: v for k, v in named.items() if v})
    return alternates
