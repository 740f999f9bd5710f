"""A guard taken out of the ledger on purpose, and how that is done to a database."""

from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """`old` is one guard in one function or migration, and `new` what stands there instead.

    For a migration `new` is a statement that undoes the guard in a migrated database.
    `within` narrows the file down to a function, so that `old` can be short.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    within: str = ""

    @property
    def is_statement(self) -> bool:
        return self.file.startswith("migrations/")


def span(mutant: Mutant, text: str) -> tuple[int, int]:
    """Where in its file the mutant may change something."""
    if not mutant.within:
        return 0, len(text)
    start = text.index(f"FUNCTION {mutant.within}(")
    return start, text.index("\n$$;", start)


def occurrences(mutant: Mutant) -> int:
    """How often the guard stands in the source as it is now; anything but once is a stale list."""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    start, end = span(mutant, text)
    return text[start:end].count(mutant.old)


def statement(mutant: Mutant) -> str:
    """What makes a migrated database a mutant."""
    if mutant.is_statement:
        return mutant.new
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    start, end = span(mutant, text)
    changed = text[start:end].replace(mutant.old, mutant.new)
    return f"CREATE OR REPLACE {changed}\n$$;"
