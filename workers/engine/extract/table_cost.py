"""How large a page's tables become when their columns are filled up."""

import re

import msgspec

# What has no end reaches to the end of the text, so that each character is read once.
_TABLE_TAG = re.compile(
    r"<(/?)(table|tr|td|th)(?=[\s>])((?:[^\">]++|\"[^\"]*+(?:\"|\Z))*+)(?:>|\Z)"
)
_SPAN = re.compile(r"\s(col|row)span=\"[\s+]*+0*+([0-9]{1,6})")
_COLSPAN_MAX = 1_000  # HTML, 4.9.11, as is the next
_ROWSPAN_MAX = 65_534
_EMPTY_CELL_CHARACTERS = 3


class TableSizes(msgspec.Struct, frozen=True, kw_only=True):
    """Characters of all tables: of their marks, and as padded to each column's widest cell."""

    filled: int
    padded: int


class _Table(msgspec.Struct, kw_only=True):
    """One table whose end has not been seen yet; `ending` has the columns of cells by row."""

    rows: int = 0
    columns: int = 0
    most_columns: int = 0
    cells: int = 0
    reaching_down: int = 0
    ending: dict[int, int] = {}
    widths: list[int] = []
    widest: int = 0
    written: int = 0
    has_spans: bool = False
    cell_at: int = -1

    def start_row(self) -> None:
        self.rows += 1
        self.cells = 0
        self.reaching_down -= self.ending.pop(self.rows, 0)
        self.columns = self.reaching_down
        self.most_columns = max(self.most_columns, self.columns)

    def start_cell(self, attributes: str, at: int) -> None:
        across, down = _spans(attributes) if attributes else (1, 1)
        self.columns += across
        self.most_columns = max(self.most_columns, self.columns)
        self.has_spans |= across > 1 or down > 1
        if down > 1:
            self.reaching_down += across
            last = self.rows + down
            self.ending[last] = self.ending.get(last, 0) + across
        self.cell_at = at
        self.cells += 1
        if self.cells > len(self.widths):
            self.widths.append(0)

    def end_cell(self, at: int) -> None:
        if self.cell_at >= 0 and self.cells:
            width = at - self.cell_at
            self.written += width
            self.widest = max(self.widest, width)
            self.widths[self.cells - 1] = max(self.widths[self.cells - 1], width)
        self.cell_at = -1

    def filled(self) -> int:
        return (self.rows + 1) * self.most_columns * _EMPTY_CELL_CHARACTERS

    def padded(self) -> int:
        # Cells that span rows shift the others to columns that are not followed here.
        shifted = min(self.most_columns * self.widest, self.written)
        width = shifted if self.has_spans else sum(self.widths)
        return (self.rows + 1) * width


def may_exceed(fragment: str, limit: int) -> bool:
    """Whether the tables might become larger than `limit`, as far as counting can tell."""
    start = fragment.find("<table")
    # Rows without a table are none; each column of a row takes a tag, or the name of a span.
    end = fragment.rfind("</table")
    rows = 2 + fragment.count("<tr", start, end)
    spans = fragment.count("span=", start, end) * _COLSPAN_MAX * _EMPTY_CELL_CHARACTERS
    return rows * (end - start + spans) > limit


def measure(fragment: str) -> TableSizes:
    """Both sizes for all tables of a fragment that a parser wrote, in one pass over its tags."""
    filled = padded = 0
    opened = [_Table()]
    for tag in _TABLE_TAG.finditer(fragment):
        closing, name, attributes = tag.groups()
        table = opened[-1]
        if name == "table":
            if not closing:
                opened.append(_Table())
            elif len(opened) > 1:
                opened.pop()
                filled, padded = filled + table.filled(), padded + table.padded()
        elif name == "tr":
            if not closing:
                table.start_row()
        elif closing:
            table.end_cell(tag.start())
        else:
            table.start_cell(attributes, tag.end())
    return TableSizes(
        filled=filled + sum(table.filled() for table in opened),
        padded=padded + sum(table.padded() for table in opened),
    )


def _spans(attributes: str) -> tuple[int, int]:
    spans = {which: int(number) for which, number in _SPAN.findall(attributes)}
    across = min(max(spans.get("col", 1), 1), _COLSPAN_MAX)
    return across, min(spans.get("row", 1) or _ROWSPAN_MAX, _ROWSPAN_MAX)
