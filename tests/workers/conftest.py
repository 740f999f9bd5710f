"""After each test that used the database its jobs are ended and every invariant is proved."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support import work


@pytest_asyncio.fixture(autouse=True)
async def the_ledger_is_proved(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    system = request.getfixturevalue("system") if "system" in request.fixturenames else None
    yield
    if system is not None:
        await work.end_all(system)
        assert await work.violations(system) == []
