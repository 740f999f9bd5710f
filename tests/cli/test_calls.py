"""What a command does with the API's answers, and with none."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from tests.support import processes
from tests.support.scripted_api import Answer, ScriptedApi

Run = Callable[..., Result]


def test_a_call_is_made_with_the_key(api: ScriptedApi, run: Run) -> None:
    api.answer("GET /v1/keys", {"items": []})

    assert run("key", "list").exit_code == 0

    assert api.asked[0].headers["authorization"] == "Bearer tenant-key"


def test_an_admins_command_is_made_with_the_admins_key(api: ScriptedApi, run: Run) -> None:
    api.answer("GET /admin/v1/tenants", {"items": [], "next": None})

    assert run("tenant", "list").exit_code == 0

    assert api.asked[0].headers["authorization"] == "Bearer admin-key"


def test_a_problem_is_told_in_its_own_words_with_its_code(api: ScriptedApi, run: Run) -> None:
    api.refuse("GET /v1/credits", 403, "forbidden", "This key lacks the scope billing:read.")

    result = run("credits", "show")

    assert result.exit_code == 1
    assert result.stderr == "pagetoll: This key lacks the scope billing:read. (forbidden)\n"
    assert result.stdout == ""


def test_a_server_that_is_not_there_is_one_sentence(run: Run) -> None:
    url = f"http://127.0.0.1:{processes.free_port()}"

    result = run("jobs", "--url", url)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"pagetoll: {url} does not answer: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("status", [200, 502])
def test_another_server_is_recognised(api: ScriptedApi, run: Run, status: int) -> None:
    api.answer("GET /v1/credits", Answer(status=status, body="<html>hello</html>"))

    result = run("credits", "show")

    assert result.exit_code == 1
    assert "Pagetoll" in result.stderr


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://[::1", "nonsense"])
def test_an_address_that_cannot_be_called_is_one_sentence(run: Run, url: str) -> None:
    result = run("credits", "show", "--url", url)

    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


def test_a_key_that_cannot_be_sent_is_one_sentence(run: Run) -> None:
    result = run("credits", "show", "--key", "clé")

    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


def test_a_list_is_read_to_its_end(api: ScriptedApi, run: Run) -> None:
    tenants = [
        {"tenant_id": str(n), "name": "n", "plan_id": "p", "status": "active", "created_at": "t"}
        for n in range(3)
    ]
    api.answer(
        "GET /admin/v1/tenants",
        {"items": tenants[:2], "next": "1"},
        {"items": tenants[2:], "next": None},
    )

    result = run("tenant", "list", "--json")

    assert [one["tenant_id"] for one in json.loads(result.stdout)] == ["0", "1", "2"]
    assert api.asked[1].target == "/admin/v1/tenants?after=1&limit=1000"


@pytest.mark.parametrize("bad", ["", "..", "a/b", "x?y", "é"])
def test_what_is_no_id_is_never_put_into_a_path(api: ScriptedApi, run: Run, bad: str) -> None:
    assert run("cancel", bad).exit_code == 2
    assert api.asked == []
