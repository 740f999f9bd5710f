"""How robots.txt is asked for: once by many, again after a day, and what its absence means."""

import asyncio

import pytest
import pytest_asyncio

from tests.support.site import LOOPBACK, Site
from workers.engine import robots
from workers.engine.fetch import Fetcher, FetchLimits
from workers.engine.robots import RobotsCache

EVERYONE_OUT = b"User-agent: *\nDisallow: /\n"
SERVER_ERROR = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest_asyncio.fixture(loop_scope="session")
async def fetcher():
    async with Fetcher(LOOPBACK, FetchLimits(), "TestBot/1.0") as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def site():
    async with Site() as running:
        yield running


async def test_many_who_ask_at_once_make_one_request(site, fetcher):
    site.page("/robots.txt", EVERYONE_OUT, content_type="text/plain")
    cache = RobotsCache(fetcher, "pagetoll")
    rules = await asyncio.gather(*(cache.rules_for(site.target(f"/{n}")) for n in range(20)))
    assert site.paths == ["/robots.txt"]
    assert not any(each.allows(f"{site.url}/a") for each in rules)


async def test_one_who_stops_waiting_does_not_stop_the_others(site, fetcher):
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def answer(_, writer):
        asked.set()
        await go_on.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    site.handle("/robots.txt", answer)
    cache = RobotsCache(fetcher, "pagetoll")
    first = asyncio.create_task(cache.rules_for(site.target()))
    second = asyncio.create_task(cache.rules_for(site.target()))
    await asked.wait()
    first.cancel()
    go_on.set()
    assert (await second).allows(f"{site.url}/a")
    assert site.paths == ["/robots.txt"]


async def test_rules_are_kept_a_day_and_then_asked_for_again(site, fetcher):
    site.page("/robots.txt", EVERYONE_OUT)
    now = Clock()
    cache = RobotsCache(fetcher, "pagetoll", monotonic=now)
    await cache.rules_for(site.target())
    now.seconds = robots.KEPT_SECONDS - 1
    await cache.rules_for(site.target())
    assert len(site.visits) == 1
    now.seconds = robots.KEPT_SECONDS
    site.page("/robots.txt", b"")
    assert (await cache.rules_for(site.target())).allows(f"{site.url}/a")


async def test_each_port_has_its_own_rules(site, fetcher):
    cache = RobotsCache(fetcher, "pagetoll")
    site.page("/robots.txt", EVERYONE_OUT)
    async with Site() as other:
        assert (await cache.rules_for(other.target())).allows(f"{other.url}/a")
        assert not (await cache.rules_for(site.target())).allows(f"{site.url}/a")


@pytest.mark.parametrize("status", [401, 403, 404, 410, 429])
async def test_a_client_error_allows_everything(site, fetcher, status):
    site.page("/robots.txt", EVERYONE_OUT, status=status)
    rules = await RobotsCache(fetcher, "pagetoll").rules_for(site.target())
    assert rules.allows(f"{site.url}/a")
    assert not rules.unreachable


async def test_a_server_error_forbids_everything_after_one_retry(site, fetcher):
    site.answers["/robots.txt"] = SERVER_ERROR
    now = Clock()
    cache = RobotsCache(fetcher, "pagetoll", monotonic=now, retry_seconds=0)
    rules = await cache.rules_for(site.target())
    assert rules.unreachable
    assert not rules.allows(f"{site.url}/a")
    assert "503" in rules.reason
    assert site.paths == ["/robots.txt"] * 2
    now.seconds = robots.FAILURE_KEPT_SECONDS
    site.page("/robots.txt", b"")
    assert (await cache.rules_for(site.target())).allows(f"{site.url}/a")


async def test_a_retry_that_succeeds_counts(site, fetcher):
    async def fail_once(_, writer):
        writer.write(SERVER_ERROR)
        site.page("/robots.txt", b"User-agent: *\nDisallow: /a\n")

    site.handle("/robots.txt", fail_once)
    rules = await RobotsCache(fetcher, "pagetoll", retry_seconds=0).rules_for(site.target())
    assert not rules.unreachable
    assert not rules.allows(f"{site.url}/a")


async def test_a_site_that_cannot_be_reached_forbids_everything(fetcher):
    async with Site() as closed:
        target = closed.target("/a")
    rules = await RobotsCache(fetcher, "pagetoll", retry_seconds=0).rules_for(target)
    assert rules.unreachable
    assert not rules.allows(target.url)


async def test_redirects_are_followed_five_times(site, fetcher):
    for hop in range(4):
        site.redirect(f"/r{hop}", f"/r{hop + 1}")
    site.redirect("/robots.txt", "/r0")
    site.page("/r4", EVERYONE_OUT)
    rules = await RobotsCache(fetcher, "pagetoll").rules_for(site.target())
    assert len(site.visits) == 6
    assert not rules.unreachable
    assert not rules.allows(f"{site.url}/a")


async def test_a_redirect_to_a_forbidden_address_forbids_everything(site, fetcher):
    site.redirect("/robots.txt", "http://169.254.169.254/robots.txt")
    rules = await RobotsCache(fetcher, "pagetoll").rules_for(site.target())
    assert rules.unreachable
    assert site.paths == ["/robots.txt"]


async def test_an_endless_file_is_read_to_the_limit(site, fetcher):
    async def never_end(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nUser-agent: *\nDisallow: /a\n")
        while not writer.is_closing():
            writer.write(b"Disallow: /padding\n" * 4096)
            await writer.drain()

    site.handle("/robots.txt", never_end)
    rules = await RobotsCache(fetcher, "pagetoll").rules_for(site.target())
    assert not rules.allows(f"{site.url}/a")


async def test_closing_ends_what_still_runs(site, fetcher):
    asked, never = asyncio.Event(), asyncio.Event()

    async def hang(_, __):
        asked.set()
        await never.wait()

    site.handle("/robots.txt", hang)
    cache = RobotsCache(fetcher, "pagetoll")
    waiting = asyncio.create_task(cache.rules_for(site.target()))
    await asked.wait()
    await cache.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_no_more_origins_are_kept_than_the_limit(monkeypatch, site, fetcher):
    monkeypatch.setattr(robots, "MAX_ORIGINS", 1)
    cache = RobotsCache(fetcher, "pagetoll")
    async with Site() as other:
        for each in (site, other, site):
            await cache.rules_for(each.target())
    assert len(site.visits) == 2
