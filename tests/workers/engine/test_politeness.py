"""A job's pace: the slower of plan and robots.txt for everybody, its own delay for itself."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.support.site import Site
from workers.engine.politeness import HostPace, Pacing, effective_pace, share_of

PLAN = HostPace(interval_seconds=0.5, concurrency=6)


class RecordingGate:
    """Lets everybody in at once, and remembers at which pace they asked."""

    def __init__(self) -> None:
        self.asked: list[HostPace] = []
        self.hosts: set[str] = set()

    @asynccontextmanager
    async def turn(self, host: str, pace: HostPace) -> AsyncGenerator[None]:
        self.asked.append(pace)
        self.hosts.add(host)
        yield

    async def wait(self, host: str, pace: HostPace) -> None:
        self.asked.append(pace)
        self.hosts.add(host)

    async def keep(self, stop: asyncio.Event) -> None:
        await stop.wait()


@pytest.mark.parametrize(
    ("crawl_delay", "interval"), [(None, 0.5), (0.1, 0.5), (3.0, 3.0), (3_600.0, 60.0)]
)
def test_the_slower_of_plan_and_robots_counts_up_to_a_minute(crawl_delay, interval) -> None:
    assert effective_pace(PLAN, crawl_delay_seconds=crawl_delay).interval_seconds == interval


async def test_a_customers_own_delay_is_never_asked_of_the_shared_gate(site: Site) -> None:
    gate = RecordingGate()
    pacing = Pacing(gate, PLAN, None, delay_seconds=0.05, is_unpaced=lambda _: False)
    clock = asyncio.get_running_loop().time
    began = clock()
    for _ in range(3):
        async with pacing.turn(site.target("/")):
            pass

    assert {pace.interval_seconds for pace in gate.asked} == {0.5}
    assert clock() - began >= 0.09


async def test_a_customers_own_delay_holds_where_nothing_else_does(site: Site) -> None:
    pacing = Pacing(RecordingGate(), PLAN, None, delay_seconds=0.05, is_unpaced=lambda _: True)
    clock = asyncio.get_running_loop().time
    began = clock()
    for _ in range(3):
        await pacing.wait(site.target("/"))

    assert clock() - began >= 0.09


@pytest.mark.parametrize("unpaced", [True, False])
async def test_a_customers_share_is_kept_at_every_host(site: Site, unpaced: bool) -> None:
    gate = RecordingGate()
    share = share_of("a", pages_per_second=20)
    pacing = Pacing(gate, PLAN, None, delay_seconds=0.0, is_unpaced=lambda _: unpaced, share=share)

    async with pacing.turn(site.target("/")):
        pass

    assert share is not None
    assert gate.asked[0] == HostPace(interval_seconds=0.05, concurrency=0)
    assert share.key in gate.hosts
    assert len(gate.asked) == (1 if unpaced else 2)


def test_a_plan_without_a_rate_has_no_share() -> None:
    assert share_of("a", pages_per_second=0) is None
