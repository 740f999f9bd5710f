"""Text that is aligned and harmless, and files that are whole or not there."""

from pathlib import Path

import pytest

from cli import output
from cli.output import CannotWrite


def test_columns_are_as_wide_as_their_widest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_table(("A", "LONG HEAD"), [("a longer cell", None), (1, True), ([], "")])

    assert capsys.readouterr().out.splitlines() == [
        "A              LONG HEAD",
        "a longer cell  -",
        "1              yes",
        "-              -",
    ]


@pytest.mark.parametrize("sign", ["\x1b", "\x00", "\n", "\r", "\x9b", "\u202e", "\u2066", "\u2028"])
def test_nothing_that_steers_a_terminal_is_printed(sign: str) -> None:
    assert output.plain(f"a{sign}[2Jb") == "a\ufffd[2Jb"


def test_letters_of_every_script_are_printed() -> None:
    assert output.plain("Größe 価格 €") == "Größe 価格 €"


def test_a_file_takes_its_place_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_text("old")

    with output.replacing(path) as file:
        assert output.write_lines(file, [{"a": 1}, {"a": 2}]) == 2
        assert path.read_text() == "old"

    assert path.read_text() == '{"a":1}\n{"a":2}\n'
    assert list(tmp_path.iterdir()) == [path]


def test_what_failed_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_text("old")

    with pytest.raises(KeyError), output.replacing(path):
        raise KeyError

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_known_at_once(tmp_path: Path) -> None:
    with (
        pytest.raises(CannotWrite, match="cannot be written: No such file or directory"),
        output.replacing(tmp_path / "missing" / "pages.jsonl"),
    ):
        pytest.fail("the file was opened")


def test_a_device_is_written_to_as_it_is() -> None:
    with output.replacing(Path("/dev/null")) as file:
        output.write_lines(file, [1])

    assert Path("/dev/null").is_char_device()
