"""compose.yaml is valid, starts things in order, and keeps secrets out of itself."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from runtime import settings
from runtime.embedded.postgres import FIRST_STATEMENTS

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
OURS = ("gateway", "worker", "ledger")
VARIABLE = re.compile(r"\$\{(\w+)(:\?|:-)?")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return YAML(typ="safe", pure=True).load(COMPOSE.read_text())["services"]


def test_it_is_valid_by_the_compose_specification():
    checked = subprocess.run(
        [
            *(sys.executable, "-m", "check_jsonschema"),
            *("--builtin-schema", "vendor.compose-spec", str(COMPOSE)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_our_processes_wait_for_healthy_servers_and_the_migrations(services: dict[str, Any]):
    for name in OURS:
        assert services[name]["depends_on"] == {
            "postgres": {"condition": "service_healthy"},
            "valkey": {"condition": "service_healthy"},
            "migrate": {"condition": "service_completed_successfully"},
        }
    assert services["worker"]["deploy"]["replicas"] == 2


def test_every_service_but_the_one_shot_says_whether_it_is_healthy(services: dict[str, Any]):
    for name, service in services.items():
        check = service["healthcheck"]
        assert ("disable" in check) == (name == "migrate"), name
        assert name == "migrate" or check["test"], name


def test_our_processes_run_with_nothing_they_do_not_need(services: dict[str, Any]):
    for name in (*OURS, "migrate"):
        service = services[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]


def test_what_our_processes_are_given_are_settings(services: dict[str, Any]):
    for name in (*OURS, "migrate"):
        given = services[name]["environment"]
        fields = {variable.removeprefix("PAGETOLL_").lower() for variable in given}
        assert fields <= set(settings.Settings.__struct_fields__), name


def test_valkey_refuses_rather_than_evicts_and_keeps_what_it_took(services: dict[str, Any]):
    command = services["valkey"]["command"]
    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"
    assert command[command.index("--appendonly") + 1] == "yes"


def test_no_server_is_published_or_reaches_the_outside(services: dict[str, Any]):
    for name in ("postgres", "valkey"):
        assert services[name]["networks"] == ["inside"]
        assert "ports" not in services[name]
    for service in services.values():
        for port in service.get("ports", []):
            assert ":-127.0.0.1:" in port


def test_every_variable_is_in_the_example_and_the_example_holds_no_secret():
    example = dict(
        line.split("=", 1)
        for line in (DEPLOY / "pagetoll.env.example").read_text().splitlines()
        if line and not line.startswith("#")
    )
    used = set(VARIABLE.findall(COMPOSE.read_text()))
    assert {name for name, _ in used} == set(example)
    for name, rule in used:
        is_secret = name.endswith(("_PASSWORD", "_KEY"))
        assert (rule == ":?") == is_secret, name
        assert not (is_secret and example[name]), name


def test_a_filled_in_env_file_stays_out_of_version_control():
    assert "pagetoll.env" in (DEPLOY / ".gitignore").read_text().split()


def test_images_have_a_version_and_no_registry(services: dict[str, Any]):
    for name, service in services.items():
        if "build" in service:
            continue
        image, _, tag = service["image"].partition(":")
        assert tag not in {"", "latest"}, name
        assert "." not in image.partition("/")[0], name


def test_the_roles_are_those_of_the_embedded_server():
    script = (DEPLOY / "postgres" / "roles.sh").read_text()
    said = re.findall(r"^((?:CREATE|GRANT) .*);$", script, re.MULTILINE)
    assert [re.sub(r" PASSWORD :'\w+'$", "", statement) for statement in said] == list(
        FIRST_STATEMENTS
    )
