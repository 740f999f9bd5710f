"""Each process takes the command's place, with the settings that it was given."""

import subprocess
import sys
from pathlib import Path

import pytest

from runtime import settings
from runtime.embedded.redis import EmbeddedRedis
from runtime.settings import Settings
from tests.support.database import DatabaseUrls
from tests.support.processes import ROOT


def start(command: str, variables: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cli", command],
        cwd=ROOT,
        env={**settings.inherited_environment(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("command", ["gateway", "worker", "ledger"])
def test_a_process_without_servers_says_what_it_needs(command: str) -> None:
    with start(command, {}) as process:
        said, _ = process.communicate(timeout=60)

    assert process.returncode == 2
    assert "PAGETOLL_DATABASE_URL is not set" in said


def test_wrong_settings_are_told_before_anything_starts() -> None:
    with start("ledger", {"PAGETOLL_PORT": "much"}) as process:
        said, _ = process.communicate(timeout=60)

    assert process.returncode == 2
    assert "PAGETOLL_PORT" in said


def test_the_process_takes_the_commands_place(
    database_urls: DatabaseUrls, redis_server: EmbeddedRedis, tmp_path: Path
) -> None:
    chosen = Settings(
        database_url=database_urls.system,
        redis_url=redis_server.url,
        data_dir=str(tmp_path),
        log_format="json",
    )
    with start("ledger", settings.environment(chosen)) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
        process.kill()

    assert "process_started" in first
    assert command[-3:-1] == [b"-m", b"accounting"]
