"""Text to one lexbor tree, and what every reader of that tree needs."""

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from workers.engine.extract import parse_cost

__all__ = ["LexborHTMLParser", "LexborNode", "attribute", "collapse", "parse"]

# More than all of a page: only texts inside each other, read again and again, are more.
READ_CHARACTERS_MAX = 16_777_216

# Nobody listens to the tree's changes, and telling of them made a long select take minutes.
_OPTIONS = int(LexborDocumentOptions.WO_EVENTS)


def parse(text: str) -> LexborHTMLParser:
    """Raises FetchFailed for markup that would take too long to parse. Not shared by threads."""
    parse_cost.check(text)
    return LexborHTMLParser(text, options=_OPTIONS)


def attribute(node: LexborNode, name: str) -> str:
    """An attribute's value, empty where it is absent or has none."""
    return (node.attributes.get(name) or "").strip()


def collapse(text: str) -> str:
    """Runs of white space become one space."""
    return " ".join(text.split())
