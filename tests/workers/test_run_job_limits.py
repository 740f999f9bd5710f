"""Where a crawl stops: pages, depth, rounds, sitemaps and patterns, each exactly as asked."""

import pytest

from runtime.database import Database
from tests.support import builders
from tests.support.site import Site, html
from tests.support.workers import crawl, ended, run_next
from workers.parts import Parts


async def test_max_pages_is_exact_and_tells_what_it_left_out(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/", html(*(f"/{number}" for number in range(30))))
    for number in range(30):
        site.page(f"/{number}", html(title=f"Page {number}"))

    done = await crawl(app, parts, site.url, max_pages=7)

    assert len(done.pages) == 7
    assert (done.job.completion_reason, done.job.partial) == ("page_limit", True)
    assert list(done.excluded.values()) == ["limit_reached"] * 24
    assert done.job.usage.credits_charged == 7


def a_chain(site: Site, length: int) -> None:
    site.page("/", html("/1", title="0"))
    for number in range(1, length):
        site.page(f"/{number}", html(f"/{number + 1}", title=str(number)))
    site.page(f"/{length}", html(title=str(length)))


async def test_max_depth_is_exact(app: Database, parts: Parts, site: Site) -> None:
    a_chain(site, 5)

    done = await crawl(app, parts, site.url, max_depth=2)

    assert sorted(page.depth for page in done.pages.values()) == [0, 1, 2]
    assert done.excluded == {site.url + "/3": "limit_reached"}
    assert done.job.completion_reason == "frontier_exhausted"


async def test_max_rounds_counts_levels(app: Database, parts: Parts, site: Site) -> None:
    a_chain(site, 5)

    done = await crawl(app, parts, site.url, max_rounds=2)

    assert sorted(page.depth for page in done.pages.values()) == [0, 1]
    assert (done.job.completion_reason, done.job.partial) == ("round_limit", True)


def a_site_with_a_sitemap(site: Site) -> None:
    site.page("/", html("/linked", title="Home"))
    site.page("/linked", html(title="Linked"))
    site.page("/listed", html("/deeper", title="Listed"))
    site.page("/deeper", html(title="Deeper"))
    site.page(
        "/sitemap.xml",
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        f"<url><loc>{site.url}/listed</loc></url></urlset>",
        content_type="application/xml",
    )


@pytest.mark.parametrize(
    ("sitemap", "paths"),
    [
        ("include", ["/", "/deeper", "/linked", "/listed"]),
        ("only", ["/", "/listed"]),
        ("skip", ["/", "/linked"]),
    ],
)
async def test_sitemaps_are_included_alone_or_skipped(
    app: Database, parts: Parts, site: Site, sitemap, paths
) -> None:
    a_site_with_a_sitemap(site)

    done = await crawl(app, parts, site.url, sitemap=sitemap)

    assert sorted(url.removeprefix(site.url) for url in done.pages) == paths


async def test_a_sitemap_that_fails_is_a_warning_and_makes_the_job_partial(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/robots.txt", f"Sitemap: {site.url}/map.xml\n", content_type="text/plain")
    site.page("/map.xml", status=503)
    site.page("/", html())

    done = await crawl(app, parts, site.url)

    assert [warning.code for warning in done.job.warnings] == ["source_failed"]
    assert (done.job.state, done.job.partial) == ("succeeded", True)


async def test_patterns_bind_every_url_but_the_first(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/", html("/docs/a", "/docs/old/b", "/blog"))
    for path in ("/docs/a", "/docs/old/b", "/blog"):
        site.page(path, html(title=path))

    done = await crawl(app, parts, site.url, include=["/docs/"], exclude=["/old/"])

    assert sorted(url.removeprefix(site.url) for url in done.pages) == ["/", "/docs/a"]
    assert set(done.excluded.values()) == {"out_of_scope"}


async def test_a_rolling_crawl_tops_its_hold_up_as_pages_succeed(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/", html(*(f"/{number}" for number in range(149))))
    for number in range(149):
        site.page(f"/{number}", html(title=f"Page {number}"))

    done = await crawl(app, parts, site.url, max_pages=200, reservation="rolling")

    usage = done.job.usage
    assert (done.job.state, done.job.completion_reason) == ("succeeded", "frontier_exhausted")
    assert (usage.credits_reserved, usage.credits_charged, usage.credits_released) == (200, 150, 50)


async def test_a_rolling_crawl_that_cannot_be_topped_up_ends_for_its_budget(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/", html(*(f"/{number}" for number in range(149))))
    for number in range(149):
        site.page(f"/{number}", html(title=f"Page {number}"))
    tenant = await builders.a_tenant(parts.database, credits=120)
    job_id = await builders.a_job(
        app, tenant.tenant_id, url=site.url, max_pages=200, reservation="rolling"
    )

    await run_next(parts)

    done = await ended(app, parts, tenant.tenant_id, job_id)
    assert (done.job.completion_reason, done.job.partial) == ("budget", True)
    assert done.job.usage.credits_charged == 100
    assert (await builders.balance_of(parts.database, tenant.tenant_id)).available == 20
