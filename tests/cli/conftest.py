"""The commands run as a user runs them, against a scripted API or a real gateway."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli import welcome
from cli.__main__ import main
from runtime.embedded.postgres import EmbeddedPostgres
from runtime.embedded.redis import EmbeddedRedis
from runtime.settings import Settings
from tests.support import processes, scripted_api
from tests.support.database import copied
from tests.support.processes import OwnProcess
from tests.support.scripted_api import ScriptedApi

Run = Callable[..., Result]


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    with scripted_api.served(ScriptedApi()) as scripted:
        yield scripted


@pytest.fixture
def run(api: ScriptedApi, tmp_path: Path) -> Run:
    """Runs `pagetoll …` against the scripted API; `variables` change its environment."""
    variables = {
        "PAGETOLL_URL": api.url,
        "PAGETOLL_KEY": "tenant-key",
        "PAGETOLL_ADMIN_KEY": "admin-key",
        "PAGETOLL_DATA_DIR": str(tmp_path / "data"),
    }
    return lambda *arguments, **changes: invoked(arguments, {**variables, **changes})


@pytest.fixture(scope="session")
def gateway_place(
    postgres_server: EmbeddedPostgres,
    database_template: str,
    redis_server: EmbeddedRedis,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[welcome.Welcome]:
    """A gateway without workers, and the keys of a tenant with credits."""
    with copied(postgres_server, database_template) as urls:
        settings = Settings(
            database_url=urls.app,
            system_database_url=urls.system,
            redis_url=redis_server.url,
            data_dir=str(tmp_path_factory.mktemp("data")),
            port=processes.free_port(),
            log_format="json",
        )
        process = OwnProcess("gateway", settings, log=tmp_path_factory.mktemp("logs") / "log")
        place = welcome.prepare(settings, None)
        process.start()
        try:
            process.wait_until_answered()
            yield place
        finally:
            process.stop()


@pytest.fixture
def live(gateway_place: welcome.Welcome) -> Run:
    """Runs `pagetoll …` against a real gateway; what it prints as JSON is in `.stdout`."""
    variables = {
        "PAGETOLL_URL": gateway_place.url,
        "PAGETOLL_KEY": gateway_place.tenant_key,
        "PAGETOLL_ADMIN_KEY": gateway_place.admin_key,
    }
    return lambda *arguments, **changes: invoked(arguments, {**variables, **changes})


def invoked(arguments: tuple[str, ...], variables: dict[str, str]) -> Result:
    result = CliRunner().invoke(main, list(arguments), env=variables, prog_name="pagetoll")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
