"""Which address a command calls, and that a key only goes where it belongs."""

from pathlib import Path

import msgspec
import pytest

from cli import connection
from cli.connection import NotConnected, Place
from cli.welcome import Welcome

HERE = "http://127.0.0.1:8000"
THERE = "https://crawls.example"


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAGETOLL_DATA_DIR", str(tmp_path))
    for name in ("PAGETOLL_URL", "PAGETOLL_KEY", "PAGETOLL_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def announced(data_dir: Path) -> Path:
    file = data_dir / "connection.json"
    welcome = Welcome(url=HERE, tenant_key="announced", admin_key="announced-admin")
    file.write_bytes(msgspec.json.encode(welcome))
    return file


def test_options_go_before_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGETOLL_URL", HERE)
    monkeypatch.setenv("PAGETOLL_KEY", "from-variable")

    assert connection.find(url=THERE + "/", key="from-option", admin=False) == Place(
        url=THERE, key="from-option"
    )


def test_variables_go_before_what_is_announced(
    announced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGETOLL_URL", THERE)
    monkeypatch.setenv("PAGETOLL_KEY", "tenant")
    monkeypatch.setenv("PAGETOLL_ADMIN_KEY", "admin")

    assert connection.find(url=None, key=None, admin=False) == Place(url=THERE, key="tenant")
    assert connection.find(url=None, key=None, admin=True) == Place(url=THERE, key="admin")


@pytest.mark.parametrize(("admin", "key"), [(False, "announced"), (True, "announced-admin")])
def test_a_running_up_is_found(announced: Path, admin: bool, key: str) -> None:
    assert connection.find(url=None, key=None, admin=admin) == Place(url=HERE, key=key)
    assert connection.find(url=HERE + "/", key=None, admin=admin) == Place(url=HERE, key=key)


def test_an_own_key_is_used_for_a_running_up(announced: Path) -> None:
    assert connection.find(url=None, key="own", admin=False) == Place(url=HERE, key="own")


def test_an_announced_key_is_sent_nowhere_else(announced: Path) -> None:
    with pytest.raises(NotConnected, match=r"No key is given for https://crawls\.example"):
        connection.find(url=THERE, key=None, admin=False)


@pytest.mark.parametrize("content", [None, "", "{}"])
def test_without_a_running_up_the_way_out_is_named(data_dir: Path, content: str | None) -> None:
    if content is not None:
        (data_dir / "connection.json").write_text(content)

    with pytest.raises(NotConnected, match=r"--url or PAGETOLL_URL"):
        connection.find(url=None, key=None, admin=False)
