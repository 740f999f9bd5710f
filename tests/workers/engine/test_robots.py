"""robots.txt as RFC 9309 reads it."""

import os
from pathlib import Path

import pytest

from workers.engine import robots
from workers.engine.robots import RobotsRules

SUITES = Path(os.environ.get("PAGETOLL_SUITES", "../shared/suites")) / "robots"
HOST = "http://example.com"
EVERYONE_OUT = b"User-agent: *\nDisallow: /\n"


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
