"""One fetched body to one page: its text in the formats asked for, its links, its metadata."""

from collections.abc import Callable

import msgspec

from jobs.addresses import AddressPolicy
from jobs.urls import Target
from workers.engine.extract import (
    charsets,
    content_types,
    html,
    links,
    main_content,
    markdown,
    metadata,
    render_cost,
    rewriting,
    size_limits,
)
from workers.engine.extract.content_types import Kind
from workers.engine.extract.html import LexborHTMLParser, LexborNode
from workers.engine.extract.links import Link, RefusedLink

FORMATS = frozenset({"markdown", "html", "raw_html", "text", "links", "metadata"})


_HOLDER_CHARACTERS = 9  # of the shortest element with an address


class ExtractOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`formats` is a subset of FORMATS; links and metadata are read in any case."""

    formats: frozenset[str] = frozenset({"markdown"})
    only_main_content: bool = True
    policy: AddressPolicy = AddressPolicy()
    max_links: int = links.MAX_LINKS


class Extracted(msgspec.Struct, frozen=True, kw_only=True):
    """A format that was not asked for is None. No string holds a NUL character."""

    title: str | None = None
    markdown: str | None = None
    html: str | None = None
    raw_html: str | None = None
    text: str | None = None
    links: tuple[Link, ...] = ()
    refused_links: tuple[RefusedLink, ...] = ()
    links_truncated: bool = False
    metadata: dict[str, object] = {}
    canonical: str | None = None
    noindex: bool = False
    nofollow: bool = False


def extract_page(
    body: bytes, *, content_type: str | None, url: Target, options: ExtractOptions
) -> Extracted:
    """Pure, and safe in a thread: most of its time is spent without the interpreter's lock.

    Raises FetchFailed: `unsupported_content_type` for what is not text, `limit_reached` for
    markup that is too costly to parse or to convert, and for a format over `size_limits`.
    """
    kind = content_types.kind_of(body, content_type)
    text = charsets.decode(body, content_type)
    content_types.check_text(body, text, kind)
    limit = size_limits.limit_bytes(len(body))
    size_limits.check(text, limit)
    if kind == "html":
        return _from_html(text, url, options, limit=limit)
    return _from_text(text, kind, options.formats, limit=limit)


def _from_html(text: str, url: Target, options: ExtractOptions, *, limit: int) -> Extracted:
    tree = html.parse(text)
    policy = options.policy
    base = links.base_of(tree, url, policy=policy)
    # Links and metadata first: what follows takes parts out of the tree.
    page_links = links.find(tree, base, policy=policy, limit=options.max_links)
    described = metadata.read(tree, base, policy=policy)
    shown = _render(tree, base, options, limit=limit)
    return Extracted(
        title=described.title,
        raw_html=text if "raw_html" in options.formats else None,
        links=page_links.links,
        refused_links=page_links.refused,
        links_truncated=page_links.truncated,
        metadata=described.values,
        canonical=described.canonical,
        noindex=described.noindex,
        nofollow=described.nofollow,
        **shown,
    )


def _render(
    tree: LexborHTMLParser, base: Target, options: ExtractOptions, *, limit: int
) -> dict[str, str]:
    """The formats that are made of the reduced tree, none of them over `limit` bytes."""
    if not options.formats & {"markdown", "html", "text"}:
        return {}
    reduce = main_content.reduce if options.only_main_content else main_content.strip_machinery
    node = reduce(tree)
    fragment, base_url = _fragment(node, base, options, limit) if node is not None else ("", None)
    size_limits.check(fragment, limit if "html" in options.formats else size_limits.MOST_BYTES)
    tables = render_cost.choose_tables(fragment, limit=limit)
    makers: dict[str, Callable[[], str]] = {
        "markdown": lambda: markdown.from_html(fragment, base_url=base_url, tables=tables),
        "html": lambda: fragment,
        "text": lambda: markdown.plain_text(fragment),
    }
    return {
        name: size_limits.check(make(), limit)
        for name, make in makers.items()
        if name in options.formats
    }


def _fragment(
    node: LexborNode, base: Target, options: ExtractOptions, limit: int
) -> tuple[str, str | None]:
    """The tree's HTML, and what its relative addresses are still to be joined with.

    Half of the limit may go into making addresses absolute.
    """
    growth = limit // 2
    if "html" not in options.formats:
        fragment = node.html or ""
        most = len(fragment) // _HOLDER_CHARACTERS
        if most * len(base.url) <= growth or fragment.count("<") * len(base.url) <= growth:
            return fragment, base.url
    is_whole = rewriting.make_absolute(node, base, policy=options.policy, growth=growth)
    return node.html or "", base.url if is_whole else None


def _from_text(text: str, kind: Kind, formats: frozenset[str], *, limit: int) -> Extracted:
    is_code = kind in ("json", "xml")
    as_markdown = markdown.fenced(text, kind) if is_code else text
    return Extracted(
        markdown=size_limits.check(as_markdown, limit) if "markdown" in formats else None,
        text=text if "text" in formats else None,
    )
