"""A look at a site for a quote: ranges that the crawl keeps to; no look lasts for ever."""

import asyncio

import pytest

from accounting import pricing, quotes, tenants
from runtime.database import Database
from tests.support import builders
from tests.support.site import Site, html
from workers import probes
from workers.parts import Parts
from workers.probes import Prober, Sight


async def quoted(app: Database, system: Database, url: str, **fields):
    tenant = await builders.a_tenant(system)
    request = builders.a_submission(
        tenant.tenant_id, **({"url": url, "max_pages": 50} | fields)
    ).request
    async with app.transaction(tenant.tenant_id) as tx:
        agreed = pricing.terms(request, await pricing.of_tenant(tx, tenant.tenant_id))
        return tenant.tenant_id, await quotes.make(
            tx, tenant.tenant_id, request, agreed, resolve=True
        )


async def probed(app: Database, parts: Parts, url: str, **fields):
    tenant_id, made = await quoted(app, parts.database, url, **fields)
    assert await Prober(parts)._look_once()
    async with app.transaction(tenant_id) as tx:
        return (await quotes.read(tx, tenant_id, made.quote_id)).probe


def a_listed_site(site: Site) -> None:
    locations = "".join(f"<url><loc>{site.url}/{number}</loc></url>" for number in range(12))
    site.page("/", html("/0", "/elsewhere"))
    site.page(
        "/sitemap.xml",
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</urlset>',
        content_type="application/xml",
    )


async def test_links_and_sitemaps_give_a_range(app: Database, parts: Parts, site: Site) -> None:
    a_listed_site(site)

    found = await probed(app, parts, site.url)

    assert found.reachable
    assert (found.pages.least, found.pages.most) == (12, 50)
    assert 0 < found.duration_seconds.least <= found.duration_seconds.most <= 300


async def test_a_crawl_of_the_sitemap_alone_is_known_closely(
    app: Database, parts: Parts, site: Site
) -> None:
    a_listed_site(site)

    found = await probed(app, parts, site.url, sitemap="only")

    assert (found.pages.least, found.pages.most) == (12, 13)


async def test_a_site_that_fails_is_an_answer(app: Database, parts: Parts, site: Site) -> None:
    site.page("/", status=404)

    found = await probed(app, parts, site.url)

    assert not found.reachable
    assert found.notes == ["the start URL gave no page: not_found"]


async def test_what_robots_txt_forbids_is_not_looked_at(
    app: Database, parts: Parts, site: Site
) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /\n", content_type="text/plain")

    found = await probed(app, parts, site.url)

    assert found.notes == ["the start URL gave no page: robots_disallowed"]
    assert site.paths == ["/robots.txt"]


async def test_a_look_that_takes_too_long_is_cut_off(
    app: Database, parts: Parts, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    site.handle("/", hang)
    monkeypatch.setattr(probes, "WHOLE_SECONDS", 0.05)

    found = await probed(app, parts, site.url)

    assert found.notes == ["the site is slow: the look was cut off"]


async def test_a_look_that_nobody_waits_for_any_more_is_not_taken(
    app: Database, parts: Parts, site: Site
) -> None:
    _, made = await quoted(app, parts.database, site.url)
    async with parts.database.connection() as connection:
        await connection.execute(
            "UPDATE quote SET created_at = created_at - interval '1 min' WHERE quote_id = $1",
            made.quote_id,
        )

    assert not await Prober(parts)._look_once()
    assert site.visits == []


async def test_the_pace_of_the_plan_is_in_the_estimate(system: Database) -> None:
    async with system.connection() as connection:
        plan = next(p for p in await tenants.plans(connection) if p.plan_id == "default")
    request = builders.a_submission(
        builders.ids.new_id(), max_pages=100, timeout_seconds=3_600
    ).request

    found = probes.estimate(
        request, plan, Sight(reachable=True, listed=100, linked=3, page_seconds=0.1)
    )

    assert (found.pages.least, found.duration_seconds.least) == (100, 50)
