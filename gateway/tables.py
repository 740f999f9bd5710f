"""Answers as tables: CSV whose cells no spreadsheet runs, and Parquet."""

import csv
import importlib
import importlib.util
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from gateway import problems

CSV = "text/csv; charset=utf-8; header=present"
PARQUET = "application/vnd.apache.parquet"
FORMULA_STARTS = frozenset("=+-@\t\r\n|%＝＋－＠")  # noqa: RUF001 # full-width signs start one too
MICROSECONDS = 1_000_000

Sort = Literal["text", "integer", "time"]


class Column(msgspec.Struct, frozen=True):
    """A column's name and what its cells hold; any cell may be empty."""

    name: str
    sort: Sort = "text"


def csv_of(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> bytes:
    """UTF-8 with a header row and CRLF (RFC 4180); numbers are bare, texts are quoted."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow([safe(column.name) for column in columns])
    writer.writerows([cell(value) for value in row] for row in rows)
    return file.getvalue().encode()


def cell(value: object) -> int | str:
    if value is None:
        return ""
    if isinstance(value, int):
        return value
    return safe(value.isoformat() if isinstance(value, datetime) else str(value))


def safe(text: str) -> str:
    """Text that a spreadsheet shows and never runs: an apostrophe precedes a formula's sign."""
    first = text.lstrip(" \u00a0\u3000\ufeff")[:1]
    return f"'{text}" if first in FORMULA_STARTS and first else text


def parquet_of(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> bytes:
    """One file with Zstandard inside; raises Refusal where the extra `parquet` is missing."""
    core, files = (load_extra("parquet", name) for name in ("arro3.core", "arro3.io"))
    arrays = {
        column.name: _array(core, column, [row[place] for row in rows])
        for place, column in enumerate(columns)
    }
    file = io.BytesIO()
    files.write_parquet(core.Table.from_pydict(arrays), file, compression="zstd(3)")
    return file.getvalue()


def load_extra(name: str, module: str) -> Any:  # noqa: ANN401 - a module that may be missing has no type
    """The module of an extra, loaded when first used; raises Refusal `invalid_request`."""
    parent = module.partition(".")[0]
    if importlib.util.find_spec(parent) is None:
        raise problems.invalid("format", f"The extra `{name}` is not installed here")
    return importlib.import_module(module)


def _array(core: Any, column: Column, values: Sequence[object]) -> Any:  # noqa: ANN401 - see load_extra
    if column.sort == "text":
        texts = [None if value is None else str(value) for value in values]
        return core.Array(texts, core.DataType.utf8())
    if column.sort == "integer":
        return core.Array(list(values), core.DataType.int64())
    moments = [_microseconds(value) for value in values]
    return core.Array(moments, core.DataType.int64()).cast(core.DataType.timestamp("us", tz="UTC"))


def _microseconds(value: object) -> int | None:
    if not isinstance(value, datetime):
        return None
    since = value - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * MICROSECONDS + since.microseconds
