"""robots.txt as RFC 9309 reads it, and how it is asked for."""

import asyncio
import os
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.site import LOOPBACK, Site
from workers.engine import robots
from workers.engine.fetch import Fetcher, FetchLimits
from workers.engine.robots import RobotsCache, RobotsRules

SUITES = Path(os.environ.get("PAGETOLL_SUITES", "../shared/suites")) / "robots"
HOST = "http://example.com"
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


def parse(text, token="pagetoll"):
    return RobotsRules.parse(text.encode(), product_token=token)


def suite_file(name):
    if not SUITES.is_dir():
        pytest.skip("the robots suite is not there (PAGETOLL_SUITES)")
    return (SUITES / name).read_bytes()


def suite(name, token):
    return RobotsRules.parse(suite_file(name), product_token=token)


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("", "/a", True),
        ("User-agent: *\nDisallow:\n", "/a", True),
        ("User-agent: *\nDisallow: /\n", "/a", False),
        ("User-agent: *\nDisallow: /\n", "/robots.txt", True),
        ("\ufeffUser-agent: *\nDisallow: /a\n", "/a", False),
        ("User-agent: *\nDisallow: /\0a\n", "/a", False),
        ("User-agent: Pagetoll/1.0\nDisallow: /\n", "/a", False),
        ("User-agent: PAGETOLL\nDisallow: /\n", "/a", False),
        ("User-agent: page\nDisallow: /\n", "/a", True),
        ("User-agent: pagetoll-images\nDisallow: /\n", "/a", True),
        ("User-agent: *\nDisallow: /\nUser-agent: pagetoll\nAllow: /\n", "/a", True),
        ("User-agent: *\nDisallow: /\nUser-agent: pagetoll\n", "/a", True),
        ("user-agent: other\r\nUSER-AGENT: *\rdisallow: /a\r", "/a", False),
        ("User-agent *\nDisallow /a\n", "/a", False),
        ("User-agent: *\nDisallow: /a # all of it\n", "/a", False),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b\n", "/a/b/c", True),
        ("User-agent: *\nAllow: /a\nDisallow: /a\n", "/a", True),
        ("User-agent: *\nDisallow: /*.gif$\n", "/x/y.gif", False),
        ("User-agent: *\nDisallow: /*.gif$\n", "/x/y.gif?z", True),
        ("User-agent: *\nDisallow: /a?b\n", "/a?b=1", False),
        ("User-agent: *\nDisallow: /%7Ejoe/\n", "/~joe/x", False),
        ("User-agent: *\nDisallow: /ümlaut\n", "/%C3%BCmlaut", False),
        ("Disallow: /\nUser-agent: *\nDisallow: /a\n", "/b", True),
        ("<html><body>User-agent: *\nDisallow: /", "/a", True),
    ],
)
def test_a_rule_is_read_as_the_standard_says(text, path, allowed):
    assert parse(text).allows(HOST + path) is allowed


def test_a_delay_between_agents_does_not_end_their_group():
    rules = parse("User-agent: pagetoll\nCrawl-delay: 10\nUser-agent: other\nDisallow: /a\n")
    assert not rules.allows(f"{HOST}/a")
    assert rules.crawl_delay == 10


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("User-agent: *\nCrawl-delay: 2.5\n", 2.5),
        ("User-agent: *\nRequest-rate: 1/10\n", 10),
        ("User-agent: *\nRequest-rate: 2/1m 0800-1200\n", 30),
        ("User-agent: *\nCrawl-delay: 1\nRequest-rate: 1/5s\n", 5),
        ("User-agent: *\nCrawl-delay: nan\n", None),
        ("User-agent: *\nCrawl-delay: -1\n", None),
        ("User-agent: *\nCrawl-delay: soon\n", None),
        ("User-agent: *\nRequest-rate: 0/5\n", None),
        ("User-agent: *\nCrawl-delay: 9\nUser-agent: pagetoll\nDisallow: /a\n", None),
        ("User-agent: other\nCrawl-delay: 9\n", None),
    ],
)
def test_a_delay_is_our_own_groups_or_everyones(text, delay):
    assert parse(text).crawl_delay == delay


def test_sitemaps_are_listed_once_wherever_they_stand():
    rules = parse(
        "Sitemap: /a.xml\nUser-agent: *\nSITEMAP: http://cdn.example/b.xml\nDisallow: /\n"
        "Sitemap: /a.xml\nSitemap:\n"
    )
    assert rules.sitemaps == ("/a.xml", "http://cdn.example/b.xml")
    assert not rules.allows(f"{HOST}/a")


def test_a_rule_that_the_limit_cuts_in_two_does_not_count():
    filler = b"#" * (robots.ROBOTS_BYTES - len(EVERYONE_OUT)) + b"\n"
    body = filler + b"User-agent: *\nDisallow: /private\n"
    rules = RobotsRules.parse(body[: robots.ROBOTS_BYTES], product_token="pagetoll")
    assert rules.allows(f"{HOST}/public")


@pytest.mark.parametrize(
    "line",
    [b"Disallow: " + b" " * 400_000 + b"x", b" " * 500_000, b"Disallow: /" + b"*a" * 200_000],
)
def test_a_long_hostile_line_is_read_in_one_go(line):
    body = b"User-agent: *\n" + line + b"\nDisallow: /closed\n"
    rules = RobotsRules.parse(body, product_token="pagetoll")
    assert not rules.allows(f"{HOST}/closed")
    assert rules.allows(f"{HOST}/{'b' * 2000}")


@pytest.mark.parametrize(
    ("name", "token", "path", "allowed"),
    [
        ("rfc9309-example-simple-robots.txt", "anybot", "/x.gif", False),
        ("rfc9309-example-simple-robots.txt", "anybot", "/publications/x", True),
        ("rfc9309-example-simple-robots.txt", "foobot", "/example/page.html", True),
        ("rfc9309-example-simple-robots.txt", "foobot", "/x", False),
        ("rfc9309-example-simple-robots.txt", "bazbot", "/example/page.html", False),
        ("rfc9309-example-simple-robots.txt", "quxbot", "/example/x", True),
        ("rfc9309-example-longest-match-robots.txt", "foobot", "/example/page/a", True),
        (
            "rfc9309-example-longest-match-robots.txt",
            "foobot",
            "/example/page/disallowed.gif",
            False,
        ),
        ("rfc9309-example-rule-group-merging.txt", "examplebot", "/baz", False),
        ("rfc9309-example-rule-group-merging.txt", "examplebot", "/foo", False),
        ("rfc9309-example-rule-group-merging.txt", "bazbot", "/foo", True),
        ("robots-with-utf8-bom.txt", "anybot", "/profile", False),
        ("crawl-delay-group-merging.txt", "mybot", "/private/", False),
        ("crawl-delay-group-merging.txt", "yourbot", "/login/", False),
    ],
)
def test_the_public_cases_hold(name, token, path, allowed):
    assert suite(name, token).allows(HOST + path) is allowed


def test_the_delays_of_the_public_case_are_each_agents_own():
    name = "crawl-delay-group-merging.txt"
    delays = {agent: suite(name, agent).crawl_delay for agent in ("mybot", "yourbot", "anybot")}
    assert delays == {"mybot": 10, "yourbot": None, "anybot": 30}


def test_every_real_file_can_be_read_and_asked():
    suite_file("merge-rules.txt")
    for file in sorted((SUITES / "real").iterdir()):
        rules = RobotsRules.parse(file.read_bytes(), product_token="pagetoll")
        assert rules.allows(f"{HOST}/robots.txt")
        assert isinstance(rules.allows(f"{HOST}/a/b?c=d"), bool)


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
