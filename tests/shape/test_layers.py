"""Who may import whom: the contracts of pyproject.toml hold, and cover every package."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {"tests", "benchmarks", "docs"}
"""Folders with modules that nothing of the product imports."""


def test_the_import_contracts_hold() -> None:
    program = Path(sys.executable).with_name("lint-imports")

    checked = subprocess.run(
        [program, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_package_stands_under_the_contracts() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {file.parent.name for file in ROOT.glob("*/__init__.py")} - OUTSIDE

    assert packages == set(project["tool"]["importlinter"]["root_packages"])
    assert packages == set(project["tool"]["mypy"]["packages"])


def test_nothing_of_the_product_imports_tests_or_docs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    starts = tuple(f"{word} {name}" for word in ("from", "import") for name in OUTSIDE)
    wrong = [
        f"{file.relative_to(ROOT)}: {line}"
        for package in project["tool"]["importlinter"]["root_packages"]
        for file in (ROOT / package).rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith(starts)
    ]

    assert wrong == []
