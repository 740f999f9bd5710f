"""A job from claim to finish against a real site, a real database and a real content store."""

import msgspec
import pytest

from jobs.addresses import AddressPolicy
from jobs.progress import adds_up
from runtime.database import Database
from tests.support.site import Site, html
from tests.support.workers import crawl
from workers.engine.extract import page as extraction
from workers.parts import Parts


def a_small_site(site: Site) -> None:
    site.page("/", html("/a", "/b#part", "/a?utm_source=x", "/a", title="Home"))
    site.page("/a", html("/b", "/c", title="A"))
    site.page("/b", html("/", title="B"))
    site.page("/c", html("https://elsewhere.example/", title="C"))


async def test_every_page_once_and_each_paid(app: Database, parts: Parts, site: Site) -> None:
    a_small_site(site)

    done = await crawl(app, parts, site.url)

    assert done.outcomes() == {site.url + path: "succeeded" for path in ("/", "/a", "/b", "/c")}
    assert sorted(site.paths) == ["/", "/a", "/b", "/c", "/robots.txt", "/sitemap.xml"]
    assert (done.job.state, done.job.completion_reason, done.job.partial) == (
        "succeeded",
        "frontier_exhausted",
        False,
    )
    usage = done.job.usage
    assert (usage.credits_charged, usage.credits_released, usage.settlement_pending) == (
        4,
        46,
        False,
    )
    assert (usage.fetch_attempts, usage.fetched_urls) == (4, 4)
    assert adds_up(done.job.progress)
    assert done.excluded == {"https://elsewhere.example/": "out_of_scope"}


async def test_a_page_has_the_formats_that_were_asked_for(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/", html("/a", title="Home", text="Some words."))

    done = await crawl(app, parts, site.url, formats=["markdown", "links", "metadata", "text"])

    page = done.pages[site.url + "/"]
    assert (page.title, page.http_status, page.depth, page.credits) == ("Home", 200, 0, 1)
    assert page.markdown.startswith("# Home")
    assert "Some words." in page.text
    assert page.links == [{"url": site.url + "/a", "text": "/a", "rel": ""}]
    assert page.content_type == "text/html; charset=utf-8"
    assert "html" not in {
        name for name in ("html", "raw_html") if isinstance(getattr(page, name), str)
    }


async def test_what_robots_txt_forbids_is_never_asked_for(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /private/\n", content_type="text/plain")
    site.page("/", html("/private/a", "/open"))
    site.page("/open", html(title="Open"))

    done = await crawl(app, parts, site.url)

    assert not [path for path in site.paths if path.startswith("/private")]
    assert done.excluded == {site.url + "/private/a": "robots_disallowed"}
    assert done.job.usage.credits_charged == 2


async def test_a_start_url_that_robots_forbids_fails_the_job(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /\n", content_type="text/plain")

    done = await crawl(app, parts, site.url)

    assert (done.job.state, done.job.completion_reason) == ("failed", "upstream_failure")
    assert done.job.error.reason == "robots_disallowed"
    assert (done.job.usage.credits_charged, done.job.usage.credits_released) == (0, 50)
    assert site.paths == ["/robots.txt"]


async def test_robots_txt_that_fails_forbids_everything_and_says_so(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/robots.txt", status=500)
    site.page("/", html())

    done = await crawl(app, parts, site.url)

    assert (done.job.state, done.job.error.reason) == ("failed", "upstream_error")
    assert done.job.error.retryable
    assert [warning.code for warning in done.job.warnings] == ["source_failed"]
    assert done.job.warnings[0].source_id == site.url
    assert "/" not in site.paths


async def test_the_customers_budget_is_a_ceiling(app: Database, parts: Parts, site: Site) -> None:
    site.page("/", html(*(f"/{number}" for number in range(20))))
    for number in range(20):
        site.page(f"/{number}", html(title=f"Page {number}"))

    done = await crawl(app, parts, site.url, max_credits=5)

    assert (done.job.completion_reason, done.job.partial) == ("budget", True)
    assert (done.job.usage.credits_reserved, done.job.usage.credits_charged) == (5, 5)
    assert sorted(set(done.outcomes().values())) == ["budget_exhausted", "succeeded"]


async def test_the_customers_headers_go_to_the_site(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/", html())

    await crawl(app, parts, site.url, headers={"Accept-Language": "de"})

    (visit,) = [visit for visit in site.visits if visit.path == "/"]
    assert visit.headers["accept-language"] == "de"
    assert visit.headers["user-agent"].startswith("PagetollBot/")


async def test_a_fault_of_ours_on_one_page_fails_that_page(
    app: Database, parts: Parts, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_small_site(site)
    real = extraction.extract_page

    def faulty(body, *, content_type, url, options):
        if url.path == "/a":
            raise RuntimeError("a fault")
        return real(body, content_type=content_type, url=url, options=options)

    monkeypatch.setattr(extraction, "extract_page", faulty)

    done = await crawl(app, parts, site.url)

    assert done.outcomes()[site.url + "/a"] == "internal_error"
    assert done.job.state == "succeeded"
    assert done.job.usage.credits_charged == 2


async def test_the_customers_headers_go_to_no_other_origin(
    app: Database, parts: Parts, site: Site
) -> None:
    async with Site("127.0.0.2") as elsewhere:
        site.page("/", html(elsewhere.url + "/", "/same"))
        site.page("/same", html(title="Same"))
        elsewhere.page("/", html(title="Elsewhere"))

        await crawl(app, parts, site.url, scope="any", headers={"Authorization": "secret"})

        sent = {visit.path: visit.headers.get("authorization") for visit in site.visits}
        assert (sent["/"], sent["/same"]) == ("secret", "secret")
        assert {visit.headers.get("authorization") for visit in elsewhere.visits} == {None}
        assert "/" in elsewhere.paths


async def test_a_page_that_cannot_be_stored_fails_alone(
    app: Database, parts: Parts, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_small_site(site)
    real = extraction.extract_page

    def with_a_bad_title(body, *, content_type, url, options):
        made = real(body, content_type=content_type, url=url, options=options)
        titles = {"/a": "\0", "/b": "\ud800"}
        return msgspec.structs.replace(made, title=titles.get(url.path, made.title))

    monkeypatch.setattr(extraction, "extract_page", with_a_bad_title)

    done = await crawl(app, parts, site.url)

    outcomes = {url.removeprefix(site.url): reason for url, reason in done.outcomes().items()}
    assert outcomes["/"] == "succeeded"
    assert (outcomes["/a"], outcomes["/b"]) == ("internal_error", "internal_error")
    assert done.job.state == "succeeded"
    assert done.job.usage.credits_charged == done.job.progress.succeeded


async def test_a_start_url_that_is_refused_by_now_is_blocked(
    app: Database, parts: Parts, site: Site
) -> None:
    a_small_site(site)
    closed = msgspec.structs.replace(parts, policy=AddressPolicy())

    done = await crawl(app, closed, site.url)

    assert (done.job.state, done.job.completion_reason) == ("failed", "upstream_failure")
    assert done.job.error.reason == "blocked"


async def test_a_page_of_thousands_of_links_is_settled_in_bounded_calls(
    app: Database, parts: Parts, site: Site
) -> None:
    for name in ("", "a", "b"):
        site.page(f"/{name}", html("/a", "/b", *(f"/{name}x{n}" for n in range(2_500)), title=name))

    done = await crawl(app, parts, site.url, max_pages=3, max_depth=1)

    assert done.job.progress.succeeded == 3
    assert done.job.progress.discovered == 3 + 3 * 2_500
    assert done.job.progress.discovery_excluded == 7_500
