"""Every test that the page of cases names exists, and no case is without one."""

import ast
import re

import pytest

from docs import generate

PAGE = generate.ROOT / "docs" / "cases.md"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
CASES = re.compile(r"^\| (?!case |---)(.+) \|$", re.MULTILINE)


def cases() -> list[str]:
    """The rows of the tables of what is here."""
    text = PAGE.read_text(encoding="utf-8").split("\n## Not here yet", 1)[0]
    return CASES.findall(text)


@pytest.mark.parametrize(("path", "name"), sorted(set(TEST.findall(PAGE.read_text("utf-8")))))
def test_a_test_that_a_case_names_exists(path: str, name: str) -> None:
    tree = ast.parse((generate.ROOT / path).read_text(encoding="utf-8"))
    functions = ast.FunctionDef | ast.AsyncFunctionDef

    assert name in {one.name for one in tree.body if isinstance(one, functions)}


def test_every_case_names_its_test() -> None:
    assert len(cases()) > 50
    assert [case for case in cases() if not TEST.search(case)] == []
