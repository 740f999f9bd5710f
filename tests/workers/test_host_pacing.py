"""One pace per host for everybody, on Redis's clock, and each process's own without it."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from runtime import ids
from runtime.embedded.redis import EmbeddedRedis
from runtime.redis import Signals
from workers.engine.politeness import HostPace
from workers.host_pacing import LocalGate, SharedGate

EVERY_100_MS = HostPace(interval_seconds=0.1, concurrency=6)


@pytest_asyncio.fixture(loop_scope="session")
async def signals(redis_server: EmbeddedRedis) -> AsyncIterator[Signals]:
    made = Signals(redis_server.url)
    yield made
    await made.close()


def a_host() -> str:
    return f"{ids.random_text(12)}.example:80"


async def starts(gates: list[SharedGate | LocalGate], host: str, count: int) -> list[float]:
    clock = asyncio.get_running_loop().time
    began: list[float] = []

    async def request(gate) -> None:
        if isinstance(gate, LocalGate):
            await gate.wait(host, EVERY_100_MS)
            began.append(clock())
            return
        async with gate.turn(host, EVERY_100_MS):
            began.append(clock())

    await asyncio.gather(*(request(gates[number % len(gates)]) for number in range(count)))
    return sorted(began)


async def test_two_workers_share_the_interval_of_a_host(signals: Signals) -> None:
    began = await starts([SharedGate(signals), SharedGate(signals)], a_host(), 6)

    # Booked at the server, 100 ms apart: five intervals lie between six starts.
    assert began[-1] - began[0] >= 0.45


async def test_hosts_do_not_wait_for_one_another(signals: Signals) -> None:
    gate = SharedGate(signals)
    hour = HostPace(interval_seconds=3_600, concurrency=1)
    async with asyncio.timeout(30):
        for _ in range(5):
            async with gate.turn(a_host(), hour):
                pass


async def test_no_more_requests_at_a_time_than_the_pace_permits(signals: Signals) -> None:
    gate, host = SharedGate(signals), a_host()
    pace = HostPace(interval_seconds=0, concurrency=2)
    inside = most = 0

    async def request() -> None:
        nonlocal inside, most
        async with gate.turn(host, pace):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(request() for _ in range(20)))

    assert most <= 2
    assert await signals.client.zcard(f"flight:{{{host}}}") == 0


async def test_without_redis_each_process_keeps_the_interval_itself() -> None:
    nowhere = Signals("unix:///nonexistent/pagetoll.sock")
    began = await starts([SharedGate(nowhere)], a_host(), 4)

    assert began[-1] - began[0] >= 0.25
    await nowhere.close()


async def test_the_local_gate_forgets_hosts_that_are_free() -> None:
    gate = LocalGate()
    for number in range(10_050):
        await gate.wait(f"host-{number}", HostPace(interval_seconds=0, concurrency=1))

    assert len(gate._free_at) <= 10_000


async def test_whoever_is_cut_off_while_waiting_gives_the_turn_back(signals: Signals) -> None:
    gate, host = SharedGate(signals), a_host()
    slow = HostPace(interval_seconds=5.0, concurrency=2)

    async def request() -> None:
        async with gate.turn(host, slow):
            await asyncio.Event().wait()

    waiting = [asyncio.create_task(request()) for _ in range(2)]
    async with asyncio.timeout(30):
        while await signals.client.zcard(f"flight:{{{host}}}") < 2:  # noqa: ASYNC110 # in Redis
            await asyncio.sleep(0.01)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)

    assert await signals.client.zcard(f"flight:{{{host}}}") == 0


async def test_a_request_of_a_dead_worker_stops_counting(signals: Signals) -> None:
    gate, host = SharedGate(signals), a_host()
    pace = HostPace(interval_seconds=0, concurrency=1, counted_seconds=0.05)
    await gate._take(host, pace, "of-a-worker-that-died")

    async with asyncio.timeout(30), gate.turn(host, pace):
        pass


async def test_what_a_live_worker_has_in_flight_goes_on_counting(signals: Signals) -> None:
    gate, host = SharedGate(signals), a_host()
    pace = HostPace(interval_seconds=0, concurrency=1, counted_seconds=0.05)
    async with gate.turn(host, pace):
        before = (await signals.client.zrange(f"flight:{{{host}}}", 0, -1, withscores=True))[0][1]
        await gate._renew()
        after = (await signals.client.zrange(f"flight:{{{host}}}", 0, -1, withscores=True))[0][1]

    assert after > before + 5_000
    assert await signals.client.zcard(f"flight:{{{host}}}") == 0
