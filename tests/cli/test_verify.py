"""`verify` tells a true export from a changed one, without asking anybody."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import msgspec
import pytest
from click.testing import Result

from accounting import signed_statements
from cli import verify, welcome
from runtime.signing import Signer

Run = Callable[..., Result]


@pytest.fixture
def export(gateway_place: welcome.Welcome, tmp_path: Path) -> Path:
    """What the live gateway, which has no secret key, tells of its tenant."""
    answer = httpx.get(
        f"{gateway_place.url}/v1/credits/export",
        headers={"Authorization": f"Bearer {gateway_place.tenant_key}"},
        trust_env=False,
    )
    file = tmp_path / "export.jsonl"
    file.write_bytes(answer.content)
    return file


def test_a_true_export_is_said_to_be_with_its_sums(run: Run, export: Path) -> None:
    result = run("verify", str(export), "--unsigned")

    assert result.exit_code == 0
    assert "not sealed yet" in result.stdout
    assert result.stdout.endswith("nobody has signed them.\n")
    shown = json.loads(run("verify", str(export), "--unsigned", "--json").stdout)
    assert (shown["signed"], shown["balance"]["available"] > 0) == (False, True)


def test_a_changed_byte_is_rejected_with_its_line(run: Run, export: Path) -> None:
    text = export.read_bytes()
    export.write_bytes(text.replace(b'"amount" : ', b'"amount" : 1', 1))

    result = run("verify", str(export), "--unsigned")

    assert result.exit_code == verify.REJECTED
    assert result.stderr.startswith("REJECTED. Line ")
    assert result.stdout == ""


def test_an_unsigned_file_must_be_permitted(run: Run, export: Path) -> None:
    result = run("verify", str(export))

    assert result.exit_code == verify.REJECTED
    assert "not signed" in result.stderr


def test_a_head_that_was_kept_must_be_in_the_chain(run: Run, export: Path) -> None:
    head = json.loads(export.read_bytes().splitlines()[0])["head"]

    assert run("verify", str(export), "--unsigned", "--head", f"0:{head}").exit_code == 0
    for other in (f"0:{'0' * 64}", f"5:{head}"):
        result = run("verify", str(export), "--unsigned", "--head", other)
        assert result.exit_code == verify.REJECTED


@pytest.mark.parametrize(
    "options",
    [
        ("--head", "5"),
        ("--head", "1:xyz"),
        ("--public-key", "AB"),
        ("--head", f"1:{'0' * 64}", "--head", f"1:{'1' * 64}"),
    ],
)
def test_what_is_no_head_or_key_is_a_usage_error(
    run: Run, export: Path, options: tuple[str, ...]
) -> None:
    assert run("verify", str(export), *options).exit_code == 2


def test_a_file_that_is_not_there_is_one_sentence(run: Run, tmp_path: Path) -> None:
    result = run("verify", str(tmp_path / "nothing"))

    assert result.exit_code == 1
    assert "cannot be read" in result.stderr


def test_a_signed_statement_is_proved_too(run: Run, tmp_path: Path) -> None:
    signer = Signer("a secret of this test")
    statement = {"opening": 0, "closing": {"total": 12}, "ledger_head": {"head": "ab"}}
    signed = statement | {
        "signature": signed_statements.sign(statement, signer),
        "public_key": signer.public_key,
    }
    file = tmp_path / "statement.json"
    file.write_bytes(msgspec.json.encode(signed))

    good = run("verify", str(file), "--public-key", str(signer.public_key))
    file.write_bytes(file.read_bytes().replace(b"12", b"13"))
    bad = run("verify", str(file))

    assert (good.exit_code, bad.exit_code) == (0, verify.REJECTED)
    assert "as it was signed" in good.stdout
    assert bad.stderr.startswith("REJECTED. its signature")
