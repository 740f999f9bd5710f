"""Refuses markup that would keep an HTML parser busy for minutes, before it is parsed."""

import re

from workers.engine.outcomes import FetchFailed

# A parser walks its stack of open elements at each tag and an element's attributes at each
# attribute, so both cost their square. Below this length that is at most about a second.
UNCHECKED_CHARACTERS = 65_536
BUDGET = 50_000_000  # steps, of about 4 ns; a page of a megabyte needs some 20,000
_MANY_ATTRIBUTES_CHARACTERS = 4_000

_VALUE = r"=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)?+"
_ATTRIBUTES = rf"((?:[^>=]++|{_VALUE})*+)(?:>|\Z)"
_ATTRIBUTE = re.compile(rf"[^\s/>=]++(?:\s*+{_VALUE})?+")
# Tags, without what comments and scripts hold. Whatever has no end reaches to the end of the
# text, so that each character is read once.
_TOKEN = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<[!?][^>]*+>?"
    rf"|<(script|style|textarea|title|xmp|iframe|noembed|noframes)(?=[\s/>]){_ATTRIBUTES}"
    r".*?(?:</\1(?=[\s/>])[^>]*+>?|\Z)"
    rf"|<(/?)([a-z][^\s/>]*+){_ATTRIBUTES}",
    re.DOTALL | re.IGNORECASE,
)
_UNNESTED = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input"]).union(
    ["link", "meta", "p", "param", "source", "track", "wbr"]
)
# The attributes of every such tag in the text end up on one element.
_MERGED = frozenset({"html", "body"})
_DRAWING = frozenset({"svg", "g", "defs", "symbol", "math", "lineargradient", "radialgradient"})
# An element whose end tag may be left out, and the open ones that its like ends.
_ENDS = {
    "li": ("li",),
    "dt": ("dt", "dd"),
    "dd": ("dt", "dd"),
    "option": ("option",),
    "td": ("td", "th"),
    "th": ("td", "th"),
    "tr": ("td", "th", "tr"),
}

_MOST_LEFT_OUT = 3  # end tags in a row: of a cell, a row and an item


def check(text: str) -> None:
    """Raises FetchFailed (`limit_reached`, `too_large`) for nesting that no real page has."""
    if len(text) <= UNCHECKED_CHARACTERS:
        return
    if estimate(text) > BUDGET:
        raise FetchFailed(
            "limit_reached", "too_large", message="The page's elements are nested too deeply."
        )


def estimate(text: str) -> int:
    """About how many steps a parser needs besides those that grow with the length alone."""
    cost = merged = 0
    opened: list[str] = []
    for _, raw_attributes, closing, spelt, attributes in _TOKEN.findall(text):
        name = spelt.lower()
        count = _many(attributes or raw_attributes)
        cost += count * count
        if name in _MERGED:
            merged += len(_ATTRIBUTE.findall(attributes))
            cost += merged
        if closing:
            _close(opened, name)
        elif name:
            _end_its_like(opened, name)
            cost += len(opened)
            if name not in _UNNESTED and not _is_drawn(opened, attributes):
                opened.append(name)
    return cost


def _many(attributes: str) -> int:
    """How many attributes there are, where there is room for many."""
    if len(attributes) <= _MANY_ATTRIBUTES_CHARACTERS:
        return 0
    return len(_ATTRIBUTE.findall(attributes))


def _is_drawn(opened: list[str], attributes: str) -> bool:
    """An empty part of a drawing: only there does a slash end an element."""
    return attributes.endswith("/") and bool(opened) and opened[-1] in _DRAWING


def _close(opened: list[str], name: str) -> None:
    """An end tag that does not fit is ignored, as a parser may do the same."""
    for above in range(min(len(opened), _MOST_LEFT_OUT + 1)):
        last = opened[-1 - above]
        if last == name:
            del opened[-1 - above :]
            return
        if last not in _ENDS:
            return


def _end_its_like(opened: list[str], name: str) -> None:
    ended = _ENDS.get(name, ())
    while opened and opened[-1] in ended:
        opened.pop()
