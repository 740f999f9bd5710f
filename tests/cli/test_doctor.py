"""The doctor says what is wrong, and how to mend it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.__main__ import main
from cli.welcome import Welcome
from runtime.embedded.postgres import OWNER, EmbeddedPostgres
from runtime.embedded.redis import EmbeddedRedis
from tests.support import processes
from tests.support.database import DatabaseUrls
from tests.support.scripted_api import ScriptedApi, problem

Findings = dict[str, dict[str, object]]
Examine = Callable[..., tuple[int, Findings]]


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    def look(**variables: str) -> tuple[int, Findings]:
        nothing = {"PAGETOLL_DATABASE_URL": "", "PAGETOLL_REDIS_URL": "", "PAGETOLL_URL": ""}
        environment = {**nothing, "PAGETOLL_DATA_DIR": str(tmp_path), **variables}
        result = CliRunner().invoke(main, ["doctor", "--json"], env=environment)
        return result.exit_code, {one["subject"]: one for one in json.loads(result.stdout)}

    return look


def test_a_machine_of_its_own_is_well(examine: Examine) -> None:
    code, findings = examine()

    assert code == 0
    assert list(findings) == ["python", "settings", "postgresql", "redis", "gateway"]
    assert str(findings["postgresql"]["found"]).startswith("embedded, version ")


def test_servers_that_answer_are_well(
    examine: Examine,
    database_urls: DatabaseUrls,
    redis_server: EmbeddedRedis,
    gateway_place: Welcome,
) -> None:
    code, findings = examine(
        PAGETOLL_DATABASE_URL=database_urls.owner,
        PAGETOLL_REDIS_URL=redis_server.url,
        PAGETOLL_URL=gateway_place.url,
    )

    assert code == 0
    assert findings["gateway"]["found"] == f"{gateway_place.url} is ready"
    assert all(one["well"] and not one["mend"] for one in findings.values())


def test_servers_that_do_not_answer_are_named(examine: Examine, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{processes.free_port()}"

    code, findings = examine(
        PAGETOLL_DATABASE_URL=f"postgresql://nobody@/none?host={tmp_path}",
        PAGETOLL_REDIS_URL=f"unix://{tmp_path}/no.sock",
        PAGETOLL_URL=url,
    )

    assert code == 1
    for subject in ("postgresql", "schema", "redis", "gateway"):
        assert not findings[subject]["well"]
        assert findings[subject]["mend"]


def test_a_database_without_tables_is_told_how_to_get_them(
    examine: Examine, postgres_server: EmbeddedPostgres
) -> None:
    code, findings = examine(PAGETOLL_DATABASE_URL=postgres_server.url(OWNER, "postgres"))

    assert code == 1
    assert findings["schema"]["mend"] == "Run `pagetoll migrate up`."


def test_settings_that_are_wrong_are_all_told(examine: Examine) -> None:
    code, findings = examine(PAGETOLL_PORT="much", PAGETOLL_WORKER="3")

    assert code == 1
    assert "PAGETOLL_" in str(findings["settings"]["found"])


def test_a_gateway_that_is_not_ready_says_what_it_misses(
    examine: Examine, api: ScriptedApi
) -> None:
    api.answer("GET /readyz", problem(503, "backend_unavailable", "Not ready: redis."))

    code, findings = examine(PAGETOLL_URL=api.url)

    assert code == 1
    assert "Not ready: redis." in str(findings["gateway"]["found"])
