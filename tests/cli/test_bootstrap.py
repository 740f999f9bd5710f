"""What the bootstrap decides: when an environment will do, and how one is made."""

from pathlib import Path

import pytest

import bootstrap

ROOT = Path(bootstrap.__file__).parent


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for lock in bootstrap.LOCKS:
        (tmp_path / lock).write_text(f"{lock}\n")
    return tmp_path


def test_the_digest_changes_with_each_lock_the_python_and_the_place(tree: Path) -> None:
    venv = tree / ".venv"
    digests = [
        bootstrap.digest(tree, venv, "3.11"),
        bootstrap.digest(tree, venv, "3.12"),
        bootstrap.digest(tree, tree / "moved", "3.11"),
    ]
    for lock in bootstrap.LOCKS:
        (tree / lock).write_text("another\n")
        digests.append(bootstrap.digest(tree, venv, "3.11"))

    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(
    ("stamp", "dev", "will_do"),
    [
        ({}, False, False),
        ({"digest": "old", "dev": True}, False, False),
        ({"digest": "now", "dev": False}, False, True),
        ({"digest": "now", "dev": False}, True, False),
        ({"digest": "now", "dev": True}, False, True),
        ({"digest": "now", "dev": True}, True, True),
    ],
)
def test_the_development_environment_does_for_both(
    stamp: dict[str, object], dev: bool, will_do: bool
) -> None:
    assert bootstrap.is_satisfied(stamp, "now", dev=dev) is will_do


@pytest.mark.parametrize("content", [None, "", "[]", "{not json"])
def test_a_stamp_that_cannot_be_read_is_no_stamp(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / bootstrap.STAMP).write_text(content)

    assert bootstrap.read_stamp(tmp_path) == {}


@pytest.mark.parametrize(
    ("arguments", "dev", "command"),
    [
        ([], False, []),
        (["--dev"], True, []),
        (["pagetoll", "up", "--dev"], False, ["pagetoll", "up", "--dev"]),
        (["--dev", "--", "pytest", "--", "x"], True, ["pytest", "--", "x"]),
        (["--", "pytest"], False, ["pytest"]),
    ],
)
def test_only_what_stands_before_the_command_is_ours(
    arguments: list[str], dev: bool, command: list[str]
) -> None:
    assert bootstrap.read_arguments(arguments) == (dev, command)


@pytest.mark.parametrize(
    ("ensurepip", "venv", "pip", "way"),
    [
        (True, True, False, "venv"),
        (True, True, True, "venv"),
        (False, True, True, "borrowed"),
        (False, True, False, ""),
        (False, False, True, ""),
    ],
)
def test_an_environment_is_made_with_what_there_is(
    ensurepip: bool, venv: bool, pip: bool, way: str
) -> None:
    assert bootstrap.how_to_make(ensurepip=ensurepip, venv=venv, pip=pip) == way


def test_what_is_missing_is_named_with_debians_package() -> None:
    assert "python3-venv" in bootstrap.NOTHING_TO_INSTALL_WITH


def test_an_environment_that_is_not_there_cannot_be_used(tmp_path: Path) -> None:
    assert not bootstrap.is_usable(tmp_path / ".venv")


def test_every_requirement_has_a_hash_and_no_lock_names_a_registry() -> None:
    for lock in bootstrap.LOCKS:
        text = (ROOT / lock).read_text()
        requirements = [line for line in text.splitlines() if line and line[0].isalnum()]

        assert requirements
        assert all("==" in line and line.endswith("\\") for line in requirements)
        assert "://" not in text


def test_the_development_lock_holds_the_runtime_lock() -> None:
    def pinned(lock: str) -> set[str]:
        lines = (ROOT / lock).read_text().splitlines()
        return {line.split()[0] for line in lines if "==" in line}

    assert pinned(bootstrap.RUNTIME_LOCK) <= pinned(bootstrap.DEV_LOCK)
