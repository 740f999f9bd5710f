"""What `pagetoll up` settles before anything runs."""

import socket
import stat
import subprocess
from pathlib import Path

import msgspec
import pytest

from cli import up
from cli.up import StartFailed
from cli.welcome import Welcome
from runtime.settings import Settings

WELCOME = Welcome(url="http://127.0.0.1:8000", tenant_key="pt_live_a", admin_key="pt_live_b")


def test_a_busy_port_is_named_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        with pytest.raises(StartFailed, match=rf"Port {port} .* is in use.*PAGETOLL_PORT"):
            up.with_port(Settings(port=port))


def test_port_zero_becomes_a_free_port() -> None:
    assert up.with_port(Settings(port=0)).port > 0


def test_a_secret_key_is_made_once_and_is_private(tmp_path: Path) -> None:
    first = up.with_secret_key(Settings(), tmp_path)
    second = up.with_secret_key(Settings(), tmp_path)

    assert len(first.secret_key) == up.SECRET_KEY_LENGTH
    assert second.secret_key == first.secret_key
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600


def test_a_secret_key_that_is_given_is_not_kept(tmp_path: Path) -> None:
    settings = up.with_secret_key(Settings(secret_key="given"), tmp_path)

    assert settings.secret_key == "given"
    assert not (tmp_path / "secret_key").exists()


def test_keys_are_kept_privately_and_read_again(tmp_path: Path) -> None:
    up.keep(tmp_path / up.KEYS, msgspec.json.encode(WELCOME))

    assert up.read_keys(tmp_path) == WELCOME
    assert stat.S_IMODE((tmp_path / up.KEYS).stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "{}", "not json"])
def test_keys_that_cannot_be_read_are_made_anew(tmp_path: Path, content: str) -> None:
    (tmp_path / up.KEYS).write_text(content)

    assert up.read_keys(tmp_path) is None


def test_the_connection_is_announced_only_while_it_holds(tmp_path: Path) -> None:
    path = tmp_path / up.CONNECTION

    with up.announced(path, WELCOME):
        assert msgspec.json.decode(path.read_bytes()) == msgspec.to_builtins(WELCOME)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    assert not path.exists()


def test_one_folder_has_one_up_and_its_connection_is_withdrawn(tmp_path: Path) -> None:
    (tmp_path / up.CONNECTION).write_text("of an earlier one that was killed")

    with up.alone(tmp_path):
        assert not (tmp_path / up.CONNECTION).exists()
        with pytest.raises(StartFailed, match="Another `pagetoll up` uses"), up.alone(tmp_path):
            pass


def test_a_child_loads_the_settings_it_was_given() -> None:
    settings = Settings(port=8123, arq=False, database_url="postgresql://a@/b?host=/tmp/x")
    code = "from runtime import settings as s; print(s.load())"
    child = up.process("x", settings)

    said = subprocess.run(
        [*child.command[:1], "-c", code],
        env=child.environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout.strip() == str(settings)


def test_nobody_answers_on_a_closed_port() -> None:
    assert not up.answers_ready(up.with_port(Settings(port=0)))


def test_the_greeting_has_a_call_to_paste() -> None:
    system = up.System(settings=Settings(), supervisor=up.Supervisor(), welcome=WELCOME)

    call = "curl -s http://127.0.0.1:8000/v1/crawls -H 'Authorization: Bearer pt_live_a'"
    assert call in up.greeting(system)
