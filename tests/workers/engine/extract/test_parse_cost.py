"""Markup that a parser would need minutes for is refused, and real pages never are."""

import gzip
import os
from pathlib import Path

import pytest

from workers.engine.extract import html, parse_cost
from workers.engine.outcomes import FetchFailed

ARTICLES = Path(os.environ.get("PAGETOLL_SUITES", "../shared/suites")) / "articles" / "html"
MANY = 100_000


@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * MANY,
        "<header>" * MANY,
        "<div></b></i>" * MANY,
        "<div x='</div>'>" * MANY,
        "<div><!-- </div> -->" * MANY,
        "<div><!x </div>" * MANY,
        "<div><!--></div>" * 10 + "<!-->" + "<div>" * MANY + "-->",
        '<p a="<!--">' + "<div>" * MANY,
        '<script>a<b="</script>' + "<div>" * MANY + '"',
        "<dd><li></x>" * MANY,
        "<p " + " ".join(f"a{n}" for n in range(MANY)) + ">",
        "<p " + " ".join(f"a{n}='>'" for n in range(MANY)) + ">",
        "".join(f"<body a{n}=1>" for n in range(MANY)),
    ],
    ids=lambda markup: markup[:24],
)
def test_what_costs_the_square_of_its_length_is_refused(markup):
    with pytest.raises(FetchFailed) as refused:
        parse_cost.check(markup)
    assert (refused.value.reason, refused.value.detail) == ("limit_reached", "too_large")


def test_more_tags_than_any_real_page_has_are_refused():
    """A tree of them takes ninety times the memory of the page."""
    parse_cost.check("<p>w" * parse_cost.TAGS_MAX)
    with pytest.raises(FetchFailed, match="500,000 tags"):
        parse_cost.check("<p>w" * (parse_cost.TAGS_MAX + 1))


@pytest.mark.parametrize(
    "markup",
    [
        "<div><p>text</p></div>" * MANY,
        "<p>text" * MANY,
        "<ul><li>a<li>b</ul>" * MANY,
        "<table>" + "<tr><td>a<td>b" * MANY + "</table>",
        "<dl>" + "<dt>a<dd>b" * MANY + "</dl>",
        "<select>" + "<option>a" * MANY + "</select>",
        "<svg>" + "<path d='M0 0'/>" * MANY + "</svg>",
        "text<br>" * MANY,
        "<script>" + "if (a<b) {}" * MANY + "</script>",
        "<img src='data:image/png;base64," + "A" * MANY + "'>",
        "<" * MANY,
    ],
    ids=lambda markup: markup[:24],
)
def test_a_long_page_that_is_flat_is_parsed(markup):
    html.parse(markup)


def test_every_real_article_is_far_from_the_budget():
    if not ARTICLES.is_dir():
        pytest.skip("the articles suite is not there (PAGETOLL_SUITES)")
    costs = [
        parse_cost.estimate(gzip.decompress(file.read_bytes()).decode("utf-8", "replace"))
        for file in ARTICLES.iterdir()
    ]
    assert max(costs) < parse_cost.BUDGET / 100
