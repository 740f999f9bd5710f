"""Leaves of a page what it is about: no menus, banners, scripts or hidden parts."""

from workers.engine.extract import html
from workers.engine.extract.html import LexborHTMLParser, LexborNode

# Never content, in no format.
_MACHINERY = "script,style,noscript,template,iframe,object,embed,svg,canvas"
_SURROUNDINGS = "nav,header,footer,aside,form,dialog,select,button,input,textarea"
# Attributes are matched by name here and by value below: that halves the time of the search.
_SUSPECTS = f"{_MACHINERY},{_SURROUNDINGS},[role],[aria-hidden],[hidden]"
_ALWAYS_DROPPED = frozenset(f"{_MACHINERY},{_SURROUNDINGS}".split(",")) - {"form"}
_DROPPED_ROLES = frozenset(
    ["alertdialog", "banner", "complementary", "contentinfo", "dialog", "navigation", "search"]
)
_FRAME = frozenset({"html", "body", "main"})
_NOWHERE: frozenset[str] = frozenset()
# An article's own header holds its title; a heading that folds is a button.
_KEPT_INSIDE = {
    "header": frozenset({"main", "article"}),
    "button": frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt"}),
}
# Old frameworks wrap a whole page in one form; a real form has less text than this.
FORM_CHARACTERS = 500
MAX_CLIMB = 32  # parents looked at: a deep page with many headers must not cost their product


def strip_machinery(tree: LexborHTMLParser) -> LexborNode | None:
    """Takes scripts and the like out; the body, or None where the page has none."""
    for node in tree.css(_MACHINERY):
        node.decompose()
    return tree.body


def reduce(tree: LexborHTMLParser) -> LexborNode | None:
    """Takes the surroundings out too and finds the content: one main, one article, or the body."""
    forms: list[LexborNode] = []
    for node in tree.css(_SUSPECTS):
        tag = node.tag or ""
        if tag == "form":
            forms.append(node)
        elif _is_dropped(node, tag):
            node.decompose()
    _drop_small(forms)
    return _content(tree)


def _drop_small(forms: list[LexborNode]) -> None:
    unread = html.READ_CHARACTERS_MAX
    for node in forms:
        characters = len(node.text())
        unread -= characters
        if characters < FORM_CHARACTERS:
            node.decompose()
        elif unread <= 0:
            return


def _is_dropped(node: LexborNode, tag: str) -> bool:
    if tag in _FRAME:
        return False
    if tag in _ALWAYS_DROPPED:
        return not _is_inside(node, _KEPT_INSIDE.get(tag, _NOWHERE))
    attributes = node.attributes
    return (
        "hidden" in attributes
        or html.attribute(node, "aria-hidden") == "true"
        or html.attribute(node, "role") in _DROPPED_ROLES
    )


def _content(tree: LexborHTMLParser) -> LexborNode | None:
    for selector in ("main,[role=main]", "article"):
        nodes = tree.css(selector)
        # Several articles are a list of them: the page is about all.
        if len(nodes) == 1 and _has_content(nodes[0]):
            return nodes[0]
    return tree.body


def _has_content(node: LexborNode) -> bool:
    return node.css_first("p,h1,h2,li,td,pre") is not None or bool(node.text(strip=True))


def _is_inside(node: LexborNode, tags: frozenset[str]) -> bool:
    parent = node.parent if tags else None
    for _ in range(MAX_CLIMB):
        if parent is None:
            return False
        if parent.tag in tags:
            return True
        parent = parent.parent
    return False
