"""What a page's markdown will cost, estimated before the converter is asked for it.

The converter copies the text of an element once for each element around it, writes the marks
of all quotes and lists in front of each line, and fills a table's rows and columns up. All
three are products of two things that a page chooses.
"""

import re
from collections import Counter
from typing import Literal

from workers.engine.extract import size_limits, table_cost

COPIED_BYTES_MAX = 200_000_000  # of about 2 ns, and as much memory where a single text is copied
QUOTED_LINES_MAX = 50_000_000  # lines times the square of the quotes around them, of about 2 ns

TableStyle = Literal["padded", "compact"]

# A tag as the parser wrote it: names in lower case, values in double quotes. What has no end
# reaches to the end of the text, so that each character is read once.
_TAG = re.compile(r"<(/?)([a-z][^\s/>]*+)(?:[^\">]++|\"[^\"]*+(?:\"|\Z))*+(?:>|\Z)")
_COUNTED = re.compile(r"<(blockquote|table|ul|ol|menu)[ >]")
_VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input"]).union(
    ["link", "meta", "param", "source", "track", "wbr"]
)
_STREAMED = frozenset({"div", "span", "center"})  # the converter makes no copy of these
_LISTS = frozenset({"ul", "ol", "menu"})
_MARK_CHARACTERS = 3  # in front of a line, for each list or quote around it


def choose_tables(fragment: str, *, limit: int) -> TableStyle:
    """How tables must be written for the markdown to stay near `limit` bytes.

    `fragment` is what a parser wrote. Raises FetchFailed (`limit_reached`, `too_large`) for
    nesting and tables that no style makes small. An ordinary page costs one search.
    """
    counts = Counter(_COUNTED.findall(fragment))
    if _may_cost(fragment, counts, limit):
        _check_nesting(fragment, limit)
    if not counts["table"] or not table_cost.may_exceed(fragment, limit):
        return "padded"
    cells = table_cost.measure(fragment)
    if cells.filled > limit:
        raise size_limits.too_large("The page's tables have too many empty cells.")
    is_wide = cells.padded > limit or cells.padded * counts["blockquote"] > COPIED_BYTES_MAX
    return "compact" if is_wide else "padded"


def _may_cost(fragment: str, counts: Counter[str], limit: int) -> bool:
    """Whether nesting might cost too much, as far as counting can tell."""
    quotes = counts["blockquote"]
    marks = quotes + counts["ul"] + counts["ol"] + counts["menu"]
    most = len(fragment)
    if most * marks <= limit and most * quotes * quotes <= QUOTED_LINES_MAX:
        return _may_be_copied(fragment)
    lines = fragment.count("<") + fragment.count("\n")
    return (
        lines * marks * _MARK_CHARACTERS > limit
        or lines * quotes * quotes > QUOTED_LINES_MAX
        or _may_be_copied(fragment)
    )


def _may_be_copied(fragment: str) -> bool:
    # No element is nested deeper than half of the tags, and a tag has 3 characters.
    size = len(fragment)
    most = size // 6 * size
    return most > COPIED_BYTES_MAX and fragment.count("<") // 2 * size > COPIED_BYTES_MAX


def _check_nesting(fragment: str, limit: int) -> None:
    copied, indented, quoted = nesting_cost(fragment)
    if copied > COPIED_BYTES_MAX or indented > limit or quoted > QUOTED_LINES_MAX:
        raise size_limits.too_large("The page's text is nested too deeply.")


def nesting_cost(fragment: str) -> tuple[int, int, int]:
    """Bytes copied between elements, bytes of marks before lines, and lines of quotes moved."""
    copied = indented = quoted = 0
    opened: list[str] = []
    copies = marks = quotes = 0
    at = 0
    for tag in _TAG.finditer(fragment):
        end = tag.end()
        copied += (end - at) * copies
        if marks:
            lines = 1 + fragment.count("\n", at, end)
            indented += lines * marks * _MARK_CHARACTERS
            quoted += lines * quotes * quotes
        at = end
        closing, name = tag.groups()
        if name in _VOID:
            continue
        if not closing:
            opened.append(name)
            step = 1
        elif opened and opened[-1] == name:
            opened.pop()
            step = -1
        else:
            continue
        copies += step * (name not in _STREAMED)
        marks += step * (name == "blockquote" or name in _LISTS)
        quotes += step * (name == "blockquote")
    return copied + (len(fragment) - at) * copies, indented, quoted
