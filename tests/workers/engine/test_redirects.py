"""Redirects, hop by hop, and what a status means."""

from datetime import timedelta
from email.utils import format_datetime

import pytest
import pytest_asyncio

from jobs import urls
from runtime import clock
from tests.support.site import LOOPBACK, Site
from workers.engine import fetch
from workers.engine.fetch import Exchange, Fetcher, FetchLimits
from workers.engine.outcomes import FetchFailed


@pytest_asyncio.fixture(loop_scope="session")
async def fetcher():
    async with Fetcher(LOOPBACK, FetchLimits(), "TestBot/1.0") as opened:
        yield opened


async def follow(fetcher, where, **options):
    return await fetcher.follow(where, timeout_seconds=20, limit_bytes=10_000, **options)


async def failure(fetcher, where, **options):
    with pytest.raises(FetchFailed) as caught:
        await follow(fetcher, where, **options)
    return caught.value.reason, caught.value.detail


async def test_one_exchange_follows_nothing(site, fetcher):
    site.redirect("/a", "/b")
    answer = await fetcher.exchange(site.target("/a"), timeout_seconds=20, limit_bytes=99)
    assert (answer.status, answer.location) == (302, "/b")
    assert site.paths == ["/a"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_and_told(site, fetcher, status):
    site.redirect("/a", "b#part", status)
    site.redirect("/b", f"{site.url}/c", status)
    site.page("/c", "end")
    hops = []

    async def on_hop(where):
        hops.append((where.path, list(site.paths)))

    answer = await follow(fetcher, site.target("/a"), on_hop=on_hop)
    assert (answer.body, answer.url) == (b"end", site.target("/c"))
    assert answer.hops == (f"{site.url}/a", f"{site.url}/b")
    assert hops == [("/b", ["/a"]), ("/c", ["/a", "/b"])]


@pytest.mark.parametrize("status", [300, 304, 305])
async def test_other_statuses_redirect_nowhere(site, fetcher, status):
    site.redirect("/a", "/b", status)
    assert (await follow(fetcher, site.target("/a"))).status == status
    site.page("/c", status=302)
    assert (await follow(fetcher, site.target("/c"))).status == 302
    assert site.paths == ["/a", "/c"]


async def test_a_hop_that_is_not_wanted_is_not_fetched(site, fetcher):
    site.redirect("/a", "/b")

    async def refuse(where):
        raise FetchFailed("robots_disallowed")

    assert await failure(fetcher, site.target("/a"), on_hop=refuse) == ("robots_disallowed", None)
    assert site.paths == ["/a"]


async def test_circles_and_long_chains_end(site, fetcher):
    site.redirect("/self", "/self")
    site.redirect("/a", "/b")
    site.redirect("/b", "/a")
    for number in range(9):
        site.redirect(f"/n{number}", f"/n{number + 1}")
    assert await failure(fetcher, site.target("/self")) == ("upstream_error", "redirects")
    assert await failure(fetcher, site.target("/a")) == ("upstream_error", "redirects")
    assert site.paths == ["/self", "/a", "/b"]
    assert await failure(fetcher, site.target("/n0")) == ("upstream_error", "redirects")
    assert site.paths[3:] == [f"/n{number}" for number in range(6)]


async def test_five_redirects_are_followed(site, fetcher):
    for number in range(5):
        site.redirect(f"/n{number}", f"/n{number + 1}")
    site.page("/n5", "end")
    assert len((await follow(fetcher, site.target("/n0"))).hops) == 5
    assert await failure(fetcher, site.target("/n0"), max_redirects=4) == (
        "upstream_error",
        "redirects",
    )


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/",
        "http://[::ffff:10.0.0.1]/",
        "http://10.0.0.1/",
        "//10.0.0.1/",
        "\\\\127.0.0.1/",
        "http://127.1/",
        "http://redis:6379/",
        "gopher://127.0.0.1:6379/_x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "/" + "a" * 3000,
    ],
)
async def test_a_redirect_inside_is_blocked(site, fetcher, location):
    site.redirect("/", location, 307)
    assert await failure(fetcher, site.target()) == ("blocked", None)
    assert site.paths == ["/"]


async def test_headers_of_the_customer_stay_on_their_origin(site, fetcher):
    async with Site() as other:
        site.redirect("/a", "/b")
        site.redirect("/b", f"{other.url}/c")
        other.redirect("/c", f"{site.url}/d")
        site.page("/d", "end")
        await follow(fetcher, site.target("/a"), headers=[("Authorization", "secret")])
        visits = [*site.visits[:2], *other.visits, site.visits[2]]
    assert ["authorization" in visit.headers for visit in visits] == [True, True, False, False]


async def test_the_body_of_a_redirect_is_not_downloaded(site, fetcher):
    site.page("/a", b"x" * 9_000_000, status=302, headers={"Location": "/b"})
    site.page("/b", "end")
    assert (await follow(fetcher, site.target("/a"))).body == b"end"


PAGE = urls.parse_target("http://public.example/", policy=LOOPBACK)

STATUSES = {
    200: None,
    206: ("upstream_error", False),
    304: ("upstream_error", False),
    400: ("upstream_error", False),
    401: ("blocked", False),
    403: ("blocked", False),
    404: ("not_found", False),
    408: ("upstream_error", True),
    410: ("not_found", False),
    418: ("upstream_error", False),
    429: ("rate_limited", True),
    451: ("blocked", False),
    500: ("upstream_error", True),
    503: ("upstream_error", True),
}


def answered(status, **headers):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Exchange(url=PAGE, status=status, headers=names, body=b"<p>x")


@pytest.mark.parametrize(("status", "expected"), STATUSES.items())
def test_a_status_has_one_meaning(status, expected):
    found = fetch.status_failure(answered(status))
    assert (found and (found.reason, found.retryable)) == expected


@pytest.mark.parametrize(("status", "body"), [(204, b""), (200, b""), (200, b" \r\n ")])
def test_a_success_without_content_is_none(status, body):
    answer = Exchange(url=PAGE, status=status, headers={}, body=body)

    found = fetch.status_failure(answer)

    assert (found.reason, found.detail) == ("upstream_error", "empty_shell")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        ("0", 1),
        ("999999", 3600),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("٣", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 1),
        ("Wed, 21 Oct 2415 07:28:00 -0000", 3600),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_that_the_site_asks_for_is_kept_within_an_hour(status, header, seconds):
    found = fetch.status_failure(answered(status, retry_after=header))
    assert found.retry_after_seconds == seconds


def test_a_wait_may_be_a_date():
    header = format_datetime(clock.now() + timedelta(minutes=10), usegmt=True)
    found = fetch.status_failure(answered(503, retry_after=header))
    assert 500 < found.retry_after_seconds <= 600
