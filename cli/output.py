"""Prints what commands found: aligned text for people, JSON for programs."""

import contextlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
import rich_click as click

C = TypeVar("C", bound=Callable[..., Any])

GAP = "  "
NOTHING = "-"
UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that could move a terminal's cursor or turn its text around."""


class CannotWrite(Exception):
    """Why a file could not be written, in one sentence."""


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def show_json(value: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def show_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their widest cell, never cut."""
    lines = [list(head), *([cell(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        click.echo(GAP.join(padded).rstrip())


def show_fields(fields: Mapping[str, object]) -> None:
    width = max(len(name) for name in fields)
    for name, value in fields.items():
        click.echo(f"{name.ljust(width)}{GAP}{cell(value)}")


def cell(value: object) -> str:
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return plain(" ".join(map(str, value))) or NOTHING
    return plain(str(value))


def plain(text: str) -> str:
    """Text that a terminal only shows: titles and URLs are written by strangers."""
    return "".join("�" if unicodedata.category(sign) in UNPRINTABLE else sign for sign in text)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` once everything is written.

    What is no plain file, such as /dev/stdout, is written to as it is. Raises CannotWrite, on
    entering where that can be known.
    """
    plain_file = not path.exists() or path.is_file()
    target = path.with_name(f"{path.name}.part") if plain_file else path
    try:
        with target.open("wb") as file:
            yield file
        if plain_file:
            target.replace(path)
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        if plain_file:
            target.unlink(missing_ok=True)


def write_lines(file: BinaryIO, items: Iterable[object]) -> int:
    """JSON Lines; how many were written."""
    count = 0
    for item in items:
        file.write(msgspec.json.encode(item) + b"\n")
        count += 1
    return count
