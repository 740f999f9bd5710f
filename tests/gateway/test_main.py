"""Starting and stopping `python -m gateway`."""

import asyncio
import os
import time
from pathlib import Path

import httpx
import pytest

from runtime.database import Database
from runtime.settings import Settings
from tests.gateway.conftest import Client, StartGateway
from tests.support import builders, processes
from tests.support.processes import OwnProcess


def test_wrong_settings_are_told_and_end_with_2(tmp_path: Path) -> None:
    process = OwnProcess("gateway", Settings(), log=tmp_path / "log")
    process.start(variables={"PAGETOLL_PROT": "80"})
    assert process.process.wait(30) == 2
    assert "PAGETOLL_PROT is not a setting" in process.log
    process.start()
    assert process.process.wait(30) == 2
    assert "PAGETOLL_DATABASE_URL is not set" in process.log
    assert "PAGETOLL_REDIS_URL is not set" in process.log


async def test_a_stopping_gateway_finishes_what_it_has_begun(
    system: Database, client: Client, start_gateway: StartGateway
) -> None:
    process = start_gateway()
    tenant = await builders.a_tenant(system, credits=100)
    key = await builders.a_key(system, tenant.tenant_id)
    job_id = await builders.a_job(system, tenant.tenant_id)
    async with system.connection() as connection:
        await builders.claimed(connection, job_id)
    # a cancel of a live run waits for 2 s, unless the run ends
    call = asyncio.create_task(client(key, process).delete(f"/v1/jobs/{job_id}"))
    while (await client(key).get(f"/v1/jobs/{job_id}")).json()["state"] == "running":
        pass
    assert await asyncio.to_thread(process.stop) == 0
    answer = await call
    assert answer.status_code == 200
    assert answer.json()["state"] in {"cancelling", "cancelled"}
    with pytest.raises(httpx.TransportError):
        await client(key, process).get("/healthz")


def test_nothing_is_left_when_the_main_process_is_killed(start_gateway: StartGateway) -> None:
    process = start_gateway()
    if not processes.children(os.getpid()):
        pytest.skip("this system does not tell a process's children")
    (child,) = processes.children(process.process.pid)
    process.kill()
    while _is_running(child):
        time.sleep(processes.LOOK_SECONDS)


async def test_the_log_has_one_line_a_request_with_its_ids(
    system: Database, client: Client, gateway: OwnProcess
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    key = await builders.a_key(system, tenant.tenant_id)
    job_id = await builders.a_job(system, tenant.tenant_id)
    await client(key).get(f"/v1/jobs/{job_id}", headers={"X-Request-Id": "look-at-me"})
    (line,) = gateway.logged("look-at-me")
    for part in (
        '"event": "request_finished"',
        '"process": "gateway"',
        f'"tenant_id": "{tenant.tenant_id}"',
        f'"job_id": "{job_id}"',
        '"route": "/v1/jobs/{job_id}"',
        '"status": 200',
    ):
        assert part in line
    assert key not in gateway.log


def _is_running(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
