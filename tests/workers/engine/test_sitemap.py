"""Sitemaps of every kind, found and read within their limits."""

import asyncio
import gzip
import os
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.site import LOOPBACK, Site
from workers.engine import sitemap, sitemap_parsing
from workers.engine.fetch import Fetcher, FetchLimits
from workers.engine.outcomes import FetchFailed
from workers.engine.sitemap import SitemapLimits

SUITES = Path(os.environ.get("PAGETOLL_SUITES", "../shared/suites")) / "sitemaps"
MEBIBYTE = 1024 * 1024
NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


@pytest_asyncio.fixture(loop_scope="session")
async def fetcher():
    async with Fetcher(LOOPBACK, FetchLimits(), "TestBot/1.0") as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def site():
    async with Site() as running:
        yield running


def parse(body, *, max_addresses=50_000, limit_bytes=MEBIBYTE):
    content = body.encode() if isinstance(body, str) else body
    return sitemap_parsing.parse(content, max_addresses=max_addresses, limit_bytes=limit_bytes)


def urlset(*addresses):
    rows = "".join(f"<url><loc>{address}</loc></url>" for address in addresses)
    return f'<?xml version="1.0"?><urlset xmlns="{NAMESPACE}">{rows}</urlset>'


def index(*addresses):
    rows = "".join(f"<sitemap><loc>{address}</loc></sitemap>" for address in addresses)
    return f'<sitemapindex xmlns="{NAMESPACE}">{rows}</sitemapindex>'


async def discover(site, fetcher, *announced, **limits):
    return await sitemap.discover(
        fetcher, site.target(), announced, policy=LOOPBACK, limits=SitemapLimits(**limits)
    )


@pytest.mark.parametrize(
    ("name", "pages", "children"),
    [
        ("atom.xml", 2, 0),
        ("rss/feed.rss", 3, 0),
        ("rss/xmlRss_pubDate.xml", 7, 0),
        ("sitemap.index.xml", 0, 15),
        ("sitemap.ns.xml", 2, 0),
        ("sitemap.txt", 2, 0),
        ("sitemap.txt.gz", 5, 0),
        ("xmlSitemap.gz", 5, 0),
        ("extension/sitemap-images.xml", 1, 0),
        ("extension/sitemap-videos.xml", 3, 0),
        ("extension/sitemap-links.xml", 3, 0),
        ("extension/hebdenbridgetimes-articles-sitemap.xml", 74, 0),
    ],
)
def test_the_public_samples_are_read_whole(name, pages, children):
    if not SUITES.is_dir():
        pytest.skip("the sitemap suite is not there (PAGETOLL_SUITES)")
    parsed = parse((SUITES / name).read_bytes())
    assert (len(parsed.pages), len(parsed.children)) == (pages, children)
    assert not parsed.malformed
    assert not parsed.truncated


@pytest.mark.parametrize(
    ("body", "pages"),
    [
        (urlset("http://a/1", " http://a/2?x=1&amp;y=2\n"), ["http://a/1", "http://a/2?x=1&y=2"]),
        ("\n\n" + urlset("http://a/1"), ["http://a/1"]),
        (b"\xef\xbb\xbf" + urlset("http://a/1").encode(), ["http://a/1"]),
        (urlset("http://a/1").encode("utf-16"), ["http://a/1"]),
        (urlset("<![CDATA[http://a/1?b&c]]>"), ["http://a/1?b&c"]),
        (gzip.compress(urlset("http://a/1").encode()), ["http://a/1"]),
        ("http://a/1\r\nnonsense\n  https://a/2  \n", ["http://a/1", "https://a/2"]),
        ("<feed><entry><link rel='self' href='/x'/><link href='/y'/></entry></feed>", ["/y"]),
        ("<rss><channel><link>/</link><item><link>/i</link></item></channel></rss>", ["/i"]),
    ],
)
def test_addresses_are_found_in_each_form(body, pages):
    parsed = parse(body)
    assert parsed.pages == pages
    assert not parsed.malformed


@pytest.mark.parametrize(
    "body",
    [
        '<!DOCTYPE urlset [<!ENTITY a "b">]>' + urlset("&a;"),
        '<!DOCTYPE urlset SYSTEM "file:///etc/passwd">' + urlset("http://a/1"),
        "<html><body><a href='http://a/1'>x</a></body></html>",
        "<urlset>" + "<a>" * 1000,
        "not a list of addresses",
    ],
)
def test_what_is_no_sitemap_gives_nothing(body):
    parsed = parse(body)
    assert parsed.malformed
    assert parsed.pages == []


def test_what_stands_before_a_mistake_is_kept():
    parsed = parse(urlset("http://a/1", "http://a/?b&c", "http://a/3"))
    assert parsed.pages == ["http://a/1"]
    assert parsed.malformed


def test_addresses_beyond_the_limit_are_left_out():
    parsed = parse(urlset(*(f"http://a/{n}" for n in range(10))), max_addresses=3)
    assert parsed.pages == ["http://a/0", "http://a/1", "http://a/2"]
    assert parsed.truncated
    assert not parsed.malformed


def test_a_body_that_the_limit_cut_is_truncated_not_malformed():
    whole = urlset(*(f"http://a/{n}" for n in range(100))).encode()
    parsed = parse(whole[:500], limit_bytes=500)
    assert len(parsed.pages) > 5
    assert parsed.truncated
    assert not parsed.malformed


def test_a_gzip_bomb_is_stopped():
    with pytest.raises(FetchFailed) as stopped:
        parse(gzip.compress(b" " * (8 * MEBIBYTE)), limit_bytes=4 * MEBIBYTE)
    assert (stopped.value.reason, stopped.value.detail) == ("limit_reached", "too_large")


def test_an_endless_address_is_cut():
    assert len(parse(urlset("x" * MEBIBYTE)).pages[0]) <= sitemap_parsing.MAX_ADDRESS_CHARACTERS


async def test_the_sitemaps_of_robots_are_followed_through_an_index(site, fetcher):
    site.page("/index.xml", index("/one.xml", f"{site.url}/two.xml.gz"))
    site.page("/one.xml", urlset(f"{site.url}/a", f"{site.url}/b#part"))
    site.page("/two.xml.gz", gzip.compress(f"{site.url}/b\n{site.url}/c\n".encode()))
    found = await discover(site, fetcher, "/index.xml")
    assert found.urls == [f"{site.url}/{name}" for name in "abc"]
    assert (found.truncated, found.failures, found.refused) == (False, (), 0)


async def test_a_sitemap_is_guessed_where_none_is_announced(site, fetcher):
    site.page("/sitemap.xml", urlset("/a"))
    assert (await discover(site, fetcher)).urls == [f"{site.url}/a"]


@pytest.mark.parametrize("body", [None, "<html><title>Not found</title></html>"])
async def test_a_wrong_guess_is_no_failure(site, fetcher, body):
    if body is not None:
        site.page("/sitemap.xml", body)
    found = await discover(site, fetcher)
    assert (found.urls, found.failures, found.truncated) == ([], (), False)


async def test_an_announced_sitemap_that_is_missing_is_a_failure(site, fetcher):
    found = await discover(site, fetcher, "/missing.xml")
    assert found.failures == ((f"{site.url}/missing.xml", "not_found"),)
    assert site.paths == ["/missing.xml"]


async def test_internal_addresses_are_refused_wherever_they_stand(site, fetcher):
    site.page("/index.xml", index("http://10.0.0.1/inner.xml", "/one.xml"))
    site.page("/one.xml", urlset("http://192.168.0.1/", "file:///etc/passwd", "/a"))
    found = await discover(site, fetcher, "http://169.254.169.254/", "/index.xml")
    assert found.urls == [f"{site.url}/a"]
    assert found.refused == 4
    assert found.failures == (
        ("http://169.254.169.254/", "blocked"),
        ("http://10.0.0.1/inner.xml", "blocked"),
    )


async def test_an_index_that_names_itself_is_read_once(site, fetcher):
    site.page("/index.xml", index("/index.xml"))
    found = await discover(site, fetcher, "/index.xml")
    assert site.paths == ["/index.xml"]
    assert not found.truncated


async def test_files_beyond_the_depth_are_not_asked_for(site, fetcher):
    for level in range(6):
        site.page(f"/{level}.xml", index(f"/{level + 1}.xml"))
    found = await discover(site, fetcher, "/0.xml")
    assert site.paths == ["/0.xml", "/1.xml", "/2.xml"]
    assert found.truncated


async def test_files_beyond_the_limit_are_not_asked_for(site, fetcher):
    site.page("/index.xml", index(*(f"/{n}.xml" for n in range(40))))
    found = await discover(site, fetcher, "/index.xml", max_files=5)
    assert len(site.visits) == 5
    assert found.truncated


async def test_no_more_addresses_are_given_than_the_limit(site, fetcher):
    site.page("/sitemap.xml", urlset(*(f"/{n}" for n in range(30))))
    found = await discover(site, fetcher, max_targets=7)
    assert len(found.urls) == 7
    assert found.truncated


async def test_failures_are_listed_to_a_limit(site, fetcher):
    announced = [f"http://10.0.0.1/{n}" for n in range(sitemap.MAX_FAILURES + 20)]
    found = await discover(site, fetcher, *announced)
    assert len(found.failures) == sitemap.MAX_FAILURES
    assert found.refused == len(announced)


async def test_slow_sitemaps_take_no_more_than_their_time(site: Site) -> None:
    async def dribble(_visit: object, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    for number in range(15):
        site.handle(f"/{number}.xml", dribble)
    limits = SitemapLimits(timeout_seconds=0.2, total_seconds=0.3)
    async with Fetcher(LOOPBACK, FetchLimits(), "TestBot/1.0") as fetcher:
        found = await sitemap.discover(
            fetcher,
            site.target("/"),
            [f"{site.url}/{number}.xml" for number in range(15)],
            policy=LOOPBACK,
            limits=limits,
        )

    assert found.truncated
    assert len(site.paths) < 15
