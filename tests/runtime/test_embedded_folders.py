"""Folders are private, and sockets have paths that fit."""

import os
import pwd
import stat
from pathlib import Path

import pytest

from runtime.embedded import folders
from runtime.embedded.processes import ServerFailed


def test_a_path_that_would_not_survive_in_a_url_gets_a_short_socket(tmp_path: Path) -> None:
    odd = tmp_path / "with space?"

    short = folders.socket_folder(odd, "s", None)
    short.rmdir()

    assert short.parent == folders.SHORT_FOLDER


def test_a_short_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    odd = tmp_path / "with space?"
    short = folders.socket_folder(odd, "s", None)
    short.chmod(0o755)
    try:
        with pytest.raises(ServerFailed, match="should be a private folder"):
            folders.socket_folder(odd, "s", None)
    finally:
        short.rmdir()


def test_a_short_path_needs_no_other_folder(tmp_path: Path) -> None:
    assert folders.socket_folder(tmp_path, "s", None) == tmp_path


def test_a_symbolic_link_in_place_of_the_short_folder_is_refused(tmp_path: Path) -> None:
    odd = tmp_path / "with space?"
    short = folders.socket_folder(odd, "s", None)
    short.rmdir()
    short.symlink_to(tmp_path)
    try:
        with pytest.raises(ServerFailed, match="should be a private folder"):
            folders.socket_folder(odd, "s", None)
    finally:
        short.unlink()


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)

    folders.make_data_folder(tmp_path)

    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o750


def test_whether_an_account_can_pass_depends_on_every_parent(tmp_path: Path) -> None:
    stranger = pwd.struct_passwd(("stranger", "x", 64_999, 64_999, "", "/", "/bin/false"))
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    tmp_path.chmod(0o700)

    assert not folders.can_pass(inner, stranger)
    assert folders.can_pass(Path("/usr/bin"), stranger)
    assert folders.can_pass(inner, pwd.getpwuid(os.geteuid()))
