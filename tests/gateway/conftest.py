"""A gateway of this module's database, started as a user starts it, and clients for it."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio

from runtime.embedded.redis import EmbeddedRedis
from runtime.settings import Settings
from tests.support import processes
from tests.support.database import DatabaseUrls
from tests.support.processes import OwnProcess

Client = Callable[..., httpx.AsyncClient]
StartGateway = Callable[..., OwnProcess]


@pytest.fixture(scope="module")
def gateway_settings(
    database_urls: DatabaseUrls,
    redis_server: EmbeddedRedis,
    tmp_path_factory: pytest.TempPathFactory,
) -> Settings:
    return Settings(
        database_url=database_urls.app,
        system_database_url=database_urls.system,
        redis_url=redis_server.url,
        data_dir=str(tmp_path_factory.mktemp("data")),
        port=processes.free_port(),
        log_format="json",
        watchdog_seconds=0.1,
        drain_seconds=5.0,
    )


@contextmanager
def started(chosen: Settings, folder: Path) -> Iterator[OwnProcess]:
    process = OwnProcess("gateway", chosen, log=folder / f"gateway-{chosen.port}.log")
    process.start()
    try:
        process.wait_until_answered()
        yield process
    finally:
        process.stop()


@pytest.fixture(scope="module")
def gateway(
    gateway_settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OwnProcess]:
    with started(gateway_settings, tmp_path_factory.mktemp("logs")) as process:
        yield process


@pytest.fixture
def start_gateway(gateway_settings: Settings, tmp_path: Path) -> Iterator[StartGateway]:
    """Starts gateways with changed settings; they end with the test."""
    with ExitStack() as held:

        def start(**changes: Any) -> OwnProcess:
            chosen = msgspec.structs.replace(
                gateway_settings, **{"port": processes.free_port(), **changes}
            )
            return held.enter_context(started(chosen, tmp_path))

        yield start


@pytest_asyncio.fixture(loop_scope="session")
async def client(gateway: OwnProcess) -> AsyncIterator[Client]:
    """Makes clients: `client(key)`, or `client(key, other_gateway)`."""
    made: list[httpx.AsyncClient] = []

    def make(key: str | None = None, process: OwnProcess = gateway) -> httpx.AsyncClient:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        made.append(
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{process.settings.port}",
                headers=headers,
                timeout=30,
                trust_env=False,
                limits=httpx.Limits(max_connections=60),
            )
        )
        return made[-1]

    yield make
    for one in made:
        await one.aclose()
