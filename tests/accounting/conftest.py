"""After each test of the ledger its jobs are ended and every invariant is proved."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runtime.database import Database
from tests.support import work


@pytest_asyncio.fixture(autouse=True)
async def the_ledger_is_proved(
    system: Database, request: pytest.FixtureRequest
) -> AsyncIterator[None]:
    yield
    if "tampers" not in request.keywords:
        await work.end_all(system)
        assert await work.violations(system) == []
