"""What a site answers, and what that makes of a page: failures, redirects, duplicates."""

import asyncio

import pytest

from jobs.progress import adds_up
from runtime.database import Database
from tests.support.site import Site, html
from tests.support.workers import crawl
from workers.parts import Parts


def a_small_site(site: Site) -> None:
    site.page("/", html("/a", "/b#part", "/a?utm_source=x", "/a", title="Home"))
    site.page("/a", html("/b", "/c", title="A"))
    site.page("/b", html("/", title="B"))
    site.page("/c", html("https://elsewhere.example/", title="C"))


async def test_every_kind_of_failure_costs_nothing(app: Database, parts: Parts, site: Site) -> None:
    async def never_answer(*_: object) -> None:
        await asyncio.Event().wait()

    site.page(
        "/", html("/404", "/500", "/429", "/403", "/hang", "/big", "/pdf", "/private", "/loop")
    )
    for status in (404, 500, 429, 403):
        site.page(f"/{status}", status=status)
    site.handle("/hang", never_answer)
    site.raw(
        "/big", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\nContent-Type: text/html\r\n\r\n"
    )
    site.page("/pdf", b"%PDF-1.4", content_type="application/pdf")
    site.redirect("/private", "http://10.0.0.1/")
    site.redirect("/loop", "/loop")

    done = await crawl(app, parts, site.url, page_timeout_seconds=1)

    outcomes = {url.removeprefix(site.url): reason for url, reason in done.outcomes().items()}
    assert outcomes == {
        "/": "succeeded",
        "/404": "not_found",
        "/500": "upstream_error",
        "/429": "rate_limited",
        "/403": "blocked",
        "/hang": "timeout",
        "/big": "limit_reached",
        "/pdf": "unsupported_content_type",
        "/private": "blocked",
        "/loop": "upstream_error",
    }
    assert (done.job.usage.credits_charged, done.job.usage.credits_released) == (1, 49)
    assert (done.job.progress.failed, done.job.progress.skipped) == (8, 1)


async def test_a_redirect_to_a_known_page_is_a_duplicate_and_not_followed(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/", html("/page", "/go"))
    site.page("/page", html(title="Page"))
    site.redirect("/go", "/page", 301)

    done = await crawl(app, parts, site.url)

    assert done.outcomes()[site.url + "/go"] == "duplicate"
    assert site.paths.count("/page") == 1
    assert done.job.usage.credits_charged == 2


async def test_a_redirect_to_a_new_page_stands_for_it(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/", html("/go"))
    site.redirect("/go", "/page", 301)
    site.page("/page", html("/page", "/", title="Page"))

    done = await crawl(app, parts, site.url)

    page = done.pages[site.url + "/go"]
    assert (page.status, page.final_url, page.title) == ("succeeded", site.url + "/page", "Page")
    assert done.excluded == {site.url + "/page": "duplicate"}
    assert site.paths.count("/page") == 1
    assert adds_up(done.job.progress)


async def test_a_redirect_out_of_scope_is_not_followed(
    app: Database, parts: Parts, site: Site
) -> None:
    async with Site("127.0.0.2") as elsewhere:
        site.page("/", html("/out"))
        site.redirect("/out", elsewhere.url + "/")
        elsewhere.page("/", html())

        done = await crawl(app, parts, site.url)

        assert done.outcomes()[site.url + "/out"] == "out_of_scope"
        assert elsewhere.visits == []


async def test_a_start_url_that_leads_out_of_scope_says_where(
    app: Database, parts: Parts, site: Site
) -> None:
    async with Site("127.0.0.2") as elsewhere:
        site.redirect("/", elsewhere.url + "/there")

        done = await crawl(app, parts, site.url)

        assert done.job.error.reason == "out_of_scope"
        assert elsewhere.url + "/there" in done.job.error.message


async def test_equal_bodies_are_paid_once(app: Database, parts: Parts, site: Site) -> None:
    site.page("/", html("/a?x=1", "/a?x=2", "/a"))
    for path in ("/a", "/a?x=1", "/a?x=2"):
        site.page(path, html(title="The same"))

    done = await crawl(app, parts, site.url)

    assert sorted(done.outcomes().values()) == [
        "duplicate",
        "duplicate",
        "succeeded",
        "succeeded",
    ]
    assert done.job.usage.credits_charged == 2


async def test_a_redirect_to_a_page_that_a_limit_left_out_is_followed(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/", html("/go", "/page"))
    site.redirect("/go", "/page")
    site.page("/page", html(title="Page"))

    done = await crawl(app, parts, site.url, max_pages=2)

    assert done.excluded == {site.url + "/page": "limit_reached"}
    assert done.pages[site.url + "/go"].title == "Page"


@pytest.mark.parametrize("status", [204, 206])
async def test_an_answer_without_a_whole_page_is_free(
    app: Database, parts: Parts, site: Site, status
) -> None:
    site.page("/", "" if status == 204 else html(), status=status)

    done = await crawl(app, parts, site.url)

    assert (done.job.state, done.job.usage.credits_charged) == ("failed", 0)
