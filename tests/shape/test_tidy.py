"""The house's limits and names, so that no review has to speak of them."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("runtime", "jobs", "accounting", "workers", "gateway", "migrations", "cli")
FOLDERS = (*PACKAGES, "docs", "deploy", "benchmarks", "tests")
GIVEN = (ROOT / "tests/support/benchsite.py", ROOT / "benchmarks/peers")
"""Not written here, and kept as they came."""

FILE_LINES_MAX = 300
FUNCTION_LINES_MAX = 50
SQL_LINES_MAX = 60
CAPTION_LENGTH_MAX = 90
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "misc", "manager"}
REMINDER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
UNEXPLAINED = re.compile(r"# type: " + r"ignore(?!\[[a-z-, ]+\] # \w)")
SQL_BLOCK = re.compile(r"^(?:-- name: |CREATE (?:OR REPLACE )?FUNCTION )(\w+)", re.MULTILINE)
BUSINESS = {
    *("credit", "credits", "charge", "charges", "refund", "ledger", "price", "prices", "invoice"),
    *("lot", "lots", "crawl", "crawls", "job", "jobs", "page", "pages", "tenant", "tenants"),
}
BUSINESS_PERMITTED = {"settings.py": BUSINESS, "database.py": {"tenant"}}
"""Settings speak of everything that can be set; row-level security knows whose a row is."""
LOADED_BY_NAME = {"migrations.env", "docs.generate", "gateway.app"}


def modules(*folders: str) -> list[Path]:
    found = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]
    return [file for file in found if not any(file.is_relative_to(given) for given in GIVEN)]


def sources(suffix: str) -> list[Path]:
    return [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob(f"*{suffix}"))]


def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def place(file: Path, line: int = 1) -> str:
    return f"{file.relative_to(ROOT)}:{line}"


def functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


ALL = [ROOT / "bootstrap.py", *modules(*FOLDERS)]
FILLED = [file for file in ALL if file.stat().st_size]


def test_no_file_is_long() -> None:
    long = [place(file, count) for file in ALL if (count := lines_of(file)) > FILE_LINES_MAX]

    assert long == []


def lines_of(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def test_no_function_is_long() -> None:
    long = [
        f"{place(file, one.lineno)} {one.name}"
        for file in ALL
        for one in functions(file)
        if (one.end_lineno or one.lineno) - one.lineno >= FUNCTION_LINES_MAX
    ]

    assert long == []


@pytest.mark.parametrize("file", sources(".sql"), ids=place)
def test_no_sql_function_or_query_is_long(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    starts = [found.start() for found in SQL_BLOCK.finditer(text)]
    blocks = [
        text[start:end].split("\n\n--")[0].rstrip()
        for start, end in zip(starts, [*starts[1:], len(text)], strict=False)
    ]

    long = [block.splitlines()[0] for block in blocks if block.count("\n") >= SQL_LINES_MAX]

    assert long == []


def test_every_module_opens_with_a_short_sentence() -> None:
    wrong = []
    for file in FILLED:
        caption = (ast.get_docstring(tree_of(file)) or "").partition("\n")[0]
        if not caption.endswith(".") or len(caption) > CAPTION_LENGTH_MAX:
            wrong.append(f"{place(file)} {len(caption)} {caption}")

    assert wrong == []


def test_no_module_has_a_vague_name() -> None:
    names = [part for file in ALL for part in file.relative_to(ROOT).with_suffix("").parts]

    assert VAGUE_NAMES.isdisjoint(names)


def test_annotations_are_read_at_run_time() -> None:
    door = ROOT / "runtime/database.py"
    wrong = []
    for file in ALL:
        for node in ast.walk(tree_of(file)):
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            checking = isinstance(node, ast.Name) and node.id == "TYPE_CHECKING"
            if future or (checking and file != door):
                wrong.append(place(file, node.lineno))

    assert wrong == []


def test_no_reminder_is_left_behind() -> None:
    texts = [*ALL, *sources(".sql"), *sources(".lua"), *sources(".md"), ROOT / "Makefile"]

    assert [place(file) for file in texts if REMINDER.search(file.read_text("utf-8"))] == []


def test_every_ignored_type_has_its_code_and_reason() -> None:
    unexplained = [
        place(file, number)
        for file in ALL
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if UNEXPLAINED.search(line)
    ]

    assert unexplained == []


def test_runtime_knows_nothing_of_the_business() -> None:
    wrong = []
    for file in modules("runtime"):
        forbidden = BUSINESS - BUSINESS_PERMITTED.get(file.name, set())
        wrong += [
            f"{place(file, line)} {name}"
            for name, line in identifiers(tree_of(file))
            if not forbidden.isdisjoint(re.split(r"_|(?<=[a-z])(?=[A-Z])", name.lower()))
        ]

    assert wrong == []


def identifiers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.Name():
                yield node.id, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Attribute():
                yield node.attr, node.lineno


def test_no_module_is_dead() -> None:
    imported = {name for file in ALL for name in imports_of(file)}
    alive = LOADED_BY_NAME | imported

    dead = [name for name in map(name_of, modules(*PACKAGES, "docs")) if not is_alive(name, alive)]

    assert dead == []


def imports_of(file: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def is_alive(name: str, alive: set[str]) -> bool:
    is_entry = name.endswith(("__init__", "__main__")) or name.startswith("migrations.versions.")
    return is_entry or name in alive


def test_the_command_is_the_one_that_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert project["project"]["scripts"] == {"pagetoll": "cli.__main__:main"}
