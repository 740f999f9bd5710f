"""The schema goes up and down, and says where it is."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.__main__ import main
from migrations import schema
from runtime import ids
from runtime.embedded.postgres import OWNER, EmbeddedPostgres
from tests.support.database import administer


@pytest.fixture
def empty_url(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    name = f"test_{ids.new_id().hex}"
    administer(postgres_server, f"CREATE DATABASE {name} OWNER {OWNER}")
    yield postgres_server.url(OWNER, name)
    administer(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


def run(url: str, *arguments: str, answer: str = "") -> Result:
    variables = {"PAGETOLL_DATABASE_URL": url, "PAGETOLL_MIGRATION_URL": ""}
    return CliRunner().invoke(main, ["migrate", *arguments], env=variables, input=answer)


def revision(url: str) -> str | None:
    known: dict[str, str | None] = json.loads(run(url, "status", "--json").stdout)
    return known["database"]


def test_a_database_goes_up_and_down(empty_url: str) -> None:
    assert revision(empty_url) is None

    assert run(empty_url, "up").exit_code == 0
    assert revision(empty_url) == schema.head()

    assert run(empty_url, "down", "0003", "--yes").exit_code == 0
    assert revision(empty_url) == "0003"


def test_going_down_is_asked_for_twice(empty_url: str) -> None:
    run(empty_url, "up")

    refused = run(empty_url, "down", "base", answer="n\n")

    assert refused.exit_code == 1
    assert revision(empty_url) == schema.head()


def test_the_status_is_readable(empty_url: str) -> None:
    assert run(empty_url, "status").stdout == f"database  -\ncode      {schema.head()}\n"


def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    result = run(f"postgresql://nobody@/none?host={tmp_path}", "up")

    assert result.exit_code == 1
    assert result.stderr.startswith("pagetoll: PostgreSQL cannot be asked: ")
    assert result.stderr.count("\n") == 1


def test_a_database_that_is_not_there_is_one_sentence(postgres_server: EmbeddedPostgres) -> None:
    result = run(postgres_server.url(OWNER, "missing"), "status")

    assert result.exit_code == 1
    assert "missing" in result.stderr


def test_without_a_server_the_way_out_is_named() -> None:
    result = run("", "status")

    assert result.exit_code == 1
    assert "PAGETOLL_DATABASE_URL is not set" in result.stderr
