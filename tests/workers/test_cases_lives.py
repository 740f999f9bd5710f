"""Jobs of which users of other crawlers said that they never end, or take everything along."""

from itertools import product
from typing import Any

import pytest

from jobs.lifecycle import is_final
from jobs.progress import adds_up
from runtime.database import Database
from runtime.embedded.redis import EmbeddedRedis
from runtime.redis import Signals
from tests.support.site import Site, html
from tests.support.workers import crawl
from workers.engine import discovery
from workers.parts import Parts

MANY_JOBS = 40


async def test_a_site_without_end_is_cut_and_said_to_be(
    app: Database, parts: Parts, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "KNOWN_BEYOND_PAGES", 60)
    for page in range(3):
        links = [f"/{page + 1}", *(f"/{page}/{number}" for number in range(100))]
        site.page("/" if page == 0 else f"/{page}", html(*links, title=str(page)))

    done = await crawl(app, parts, site.url, max_pages=2, sitemap="skip")

    most = discovery.LISTED_PER_PAGE * 2 + 60
    assert [warning.code for warning in done.job.warnings] == ["discovery_truncated"]
    assert done.job.progress.discovered <= most + 2
    assert (done.job.completion_reason, done.job.usage.credits_charged) == ("page_limit", 2)


async def keys_of(redis_url: str) -> int:
    signals = Signals(redis_url)
    try:
        count: int = await signals.client.dbsize()
    finally:
        await signals.close()
    return count


async def test_many_jobs_leave_nothing_behind_in_redis(
    app: Database, parts: Parts, site: Site, redis_server: EmbeddedRedis
) -> None:
    site.page("/", html(title="Home"))
    await crawl(app, parts, site.url, max_pages=1)
    before = await keys_of(redis_server.url)

    for _ in range(MANY_JOBS):
        await crawl(app, parts, site.url, max_pages=1)

    assert await keys_of(redis_server.url) <= before


CHOICES: dict[str, list[Any]] = {
    "max_concurrency": [1, 2, 1_000],
    "delay_seconds": [0.0, 0.001],
    "sitemap": ["include", "skip", "only"],
    "robots": ["obey", "ignore"],
    "reservation": ["full", "rolling"],
    "max_depth": [0, None],
    "max_rounds": [1, None],
    "scope": ["host", "path", "any"],
}


async def test_whatever_is_asked_for_ends_with_its_sums(
    app: Database, parts: Parts, site: Site
) -> None:
    """Every pair of two parameters' values at least once, the others being the defaults."""
    site.page("/", html("/a", "/b", title="Home"))
    site.page("/a", html("/", title="A"))
    pairs = (
        {first: one, second: other}
        for first, second in zip(CHOICES, [*list(CHOICES)[1:], "max_concurrency"], strict=True)
        for one, other in product(CHOICES[first], CHOICES[second])
    )
    for asked in pairs:
        done = await crawl(app, parts, site.url, max_pages=3, **asked)

        usage = done.job.usage
        assert is_final(done.job.state), asked
        assert adds_up(done.job.progress), asked
        assert usage.credits_reserved == usage.credits_charged + usage.credits_released, asked
