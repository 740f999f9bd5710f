"""Two gateways behind a balancer are restarted one after the other, and no caller notices."""

import asyncio

import httpx

from runtime.database import Database
from tests.gateway.conftest import StartGateway
from tests.support import builders
from tests.support.balancer import balancing

CALLERS = 6
ROUNDS = 1


class Caller:
    """Submits jobs and looks at them, one call after the other, until told to stop."""

    def __init__(self, name: int, port: int, key: str, stop: asyncio.Event) -> None:
        self._name, self._stop = name, stop
        self._base = f"http://127.0.0.1:{port}"
        self._headers = {"Authorization": f"Bearer {key}", "Connection": "close"}
        self.jobs: list[str] = []
        self.statuses: list[int] = []

    async def call(self) -> None:
        async with httpx.AsyncClient(
            base_url=self._base, headers=self._headers, timeout=30, trust_env=False
        ) as client:
            while not self._stop.is_set():
                made = await client.post(
                    "/v1/crawls",
                    json={"url": "https://example.com/", "max_pages": 1},
                    headers={"Idempotency-Key": f"{self._name}-{len(self.jobs)}"},
                )
                self.statuses.append(made.status_code)
                self.jobs.append(made.json()["job_id"])
                seen = await client.get(f"/v1/jobs/{self.jobs[-1]}")
                self.statuses.append(seen.status_code)


async def test_a_rolling_restart_loses_nothing_and_answers_everything(
    system: Database, start_gateway: StartGateway
) -> None:
    tenant = await builders.a_tenant(system, credits=100_000)
    key = await builders.a_key(system, tenant.tenant_id)
    gateways = [start_gateway(), start_gateway()]
    stop = asyncio.Event()
    async with balancing([one.settings.port for one in gateways]) as port:
        callers = [Caller(number, port, key, stop) for number in range(CALLERS)]
        calling = [asyncio.create_task(caller.call()) for caller in callers]
        for gateway in gateways * ROUNDS:
            assert await asyncio.to_thread(gateway.stop) == 0
            gateway.start()
            await asyncio.to_thread(gateway.wait_until_answered)
        stop.set()
        await asyncio.gather(*calling)

    assert {status for caller in callers for status in caller.statuses} == {200, 202}
    made = [job for caller in callers for job in caller.jobs]
    async with system.connection() as connection:
        known = await connection.fetchval(
            "SELECT count(*) FROM job WHERE tenant_id = $1", tenant.tenant_id
        )
    assert len(set(made)) == len(made) == known
