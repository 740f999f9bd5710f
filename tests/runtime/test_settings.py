"""Settings are read once, and every wrong one is named at once."""

import ipaddress

import msgspec
import pytest

from runtime import settings as configuration
from runtime.settings import Settings, SettingsError


def faults_of(**variables: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        configuration.load({f"PAGETOLL_{name.upper()}": text for name, text in variables.items()})
    return caught.value.faults


def test_nothing_set_gives_the_defaults() -> None:
    assert configuration.load({"PATH": "/bin"}) == Settings()


def test_each_value_gets_its_fields_type() -> None:
    settings = configuration.load(
        {
            "PAGETOLL_PORT": "8001",
            "PAGETOLL_LEASE_SECONDS": "2.5",
            "PAGETOLL_ARQ": "off",
            "PAGETOLL_HOST": "0.0.0.0",
        }
    )

    assert settings == Settings(port=8001, lease_seconds=2.5, arq=False, host="0.0.0.0")


@pytest.mark.parametrize("text", ["on", "yes", "true", "1"])
def test_a_switch_can_be_said_in_several_words(text: str) -> None:
    assert configuration.load({"PAGETOLL_ARQ": text}).arq is True


def test_every_wrong_value_is_named_at_once() -> None:
    faults = faults_of(
        port="70000",
        pool_size="none",
        arq="perhaps",
        database_url="mysql://host/name",
        redis_url="http://host",
        log_format="xml",
        log_level="loud",
        allow_networks="10.0.0.0/8, 10.0.0.1/8",
    )

    named = ["PORT", "POOL_SIZE", "ARQ", "DATABASE_URL", "REDIS_URL"]
    named += ["LOG_FORMAT", "LOG_LEVEL", "ALLOW_NETWORKS"]
    assert len(faults) == len(named)
    for name in named:
        assert any(fault.startswith(f"PAGETOLL_{name} ") for fault in faults), name


def test_a_misspelt_name_is_named() -> None:
    assert faults_of(prot="8001") == ["PAGETOLL_PROT is not a setting; see docs/settings.md."]


def test_variables_of_the_clients_side_are_no_settings() -> None:
    assert configuration.load(dict.fromkeys(configuration.ELSEWHERE, "x")) == Settings()


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(arq=False, port=0, flush_seconds=0.125, allow_networks="127.0.0.0/8,::1/128"),
        Settings(database_url="postgresql://a@/b?host=/tmp/x", secret_key="s", log_format="json"),
    ],
)
def test_another_process_loads_the_same_settings(settings: Settings) -> None:
    assert configuration.load(configuration.environment(settings)) == settings


def test_a_process_of_its_own_needs_both_servers() -> None:
    with pytest.raises(SettingsError) as caught:
        configuration.need_servers(Settings())

    assert [fault.split()[0] for fault in caught.value.faults] == [
        "PAGETOLL_DATABASE_URL",
        "PAGETOLL_REDIS_URL",
    ]


def test_a_process_of_its_own_with_both_servers_may_run() -> None:
    configuration.need_servers(
        Settings(database_url="postgresql://host/name", redis_url="redis://host")
    )


def test_a_child_inherits_everything_but_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGETOLL_PORT", "1")
    monkeypatch.setenv("SOMETHING", "else")

    inherited = configuration.inherited_environment()

    assert inherited["SOMETHING"] == "else"
    assert "PAGETOLL_PORT" not in inherited


def test_a_variable_of_the_clients_side_may_be_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAGETOLL_URL", raising=False)
    assert configuration.client_variable("PAGETOLL_URL") == ""

    monkeypatch.setenv("PAGETOLL_URL", "http://127.0.0.1:1")
    assert configuration.client_variable("PAGETOLL_URL") == "http://127.0.0.1:1"


def test_what_is_not_said_follows_from_what_is() -> None:
    settings = Settings(database_url="postgresql://host/name", data_dir="/srv/toll", port=8001)

    assert settings.system_url == settings.owner_url == "postgresql://host/name"
    assert settings.content_place == "/srv/toll/content"
    assert settings.base_url == "http://127.0.0.1:8001"


def test_what_is_said_stands() -> None:
    settings = msgspec.structs.replace(
        Settings(database_url="postgresql://host/name"),
        system_database_url="postgresql://system@host/name",
        migration_url="postgresql://owner@host/name",
        content_url="s3://bucket/pages",
        public_url="https://toll.example/",
        allow_networks=" 10.0.0.0/8 , ,fd00::/8",
    )

    assert settings.system_url == "postgresql://system@host/name"
    assert settings.owner_url == "postgresql://owner@host/name"
    assert settings.content_place == "s3://bucket/pages"
    assert settings.base_url == "https://toll.example"
    assert settings.networks == (
        ipaddress.ip_network("10.0.0.0/8"),
        ipaddress.ip_network("fd00::/8"),
    )
