"""What a page says about itself."""

import pytest

from jobs import urls
from jobs.addresses import AddressPolicy
from workers.engine.extract import html, metadata

POLICY = AddressPolicy()
PAGE = urls.parse_target("https://example.com/docs/page", policy=POLICY)


def read(markup):
    return metadata.read(html.parse(markup), PAGE, policy=POLICY)


def test_the_head_is_read():
    found = read(
        '<html lang="en-GB"><head><title> A\n title </title>'
        '<meta name="Description" content=" What it\n is "><meta name=author content=Ann>'
        '<meta property="og:title" content="Card"><meta name="twitter:card" content="summary">'
        '<meta name="viewport" content="width=1"><link rel="canonical" href="/docs/page?x=1#y">'
        '<link rel="alternate" hreflang="de" href="/de/page">'
        '<link rel="alternate stylesheet" href="http://10.0.0.1/">'
    )
    assert found.title == "A title"
    assert found.canonical == "https://example.com/docs/page?x=1"
    assert found.values == {
        "title": "A title",
        "description": "What it is",
        "author": "Ann",
        "language": "en-GB",
        "canonical": "https://example.com/docs/page?x=1",
        "open_graph": {"og:title": "Card", "twitter:card": "summary"},
        "alternates": [{"url": "https://example.com/de/page", "hreflang": "de"}],
    }


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("<title>One</title><title>Two</title>", "One"),
        ("<title> </title><h1>A <i>heading</i></h1>", "A heading"),
        ('<meta property="og:title" content="Card">', "Card"),
        ("<p>x</p>", None),
        ("", None),
    ],
)
def test_a_title_is_found_where_there_is_one(markup, title):
    assert read(markup).title == title


def test_an_image_does_not_name_the_page():
    assert read("<svg><title>Icon</title></svg><h1>Page</h1>").title == "Page"


@pytest.mark.parametrize(
    ("content", "noindex", "nofollow"),
    [
        ("noindex", True, False),
        ("NoIndex, NoFollow", True, True),
        ("none", True, True),
        ("index, follow", False, False),
        ("max-snippet:20, nofollow", False, True),
        ("noindexing", False, False),
    ],
)
def test_robots_directives_are_words(content, noindex, nofollow):
    found = read(f'<body><p>late</p><meta name="ROBOTS" content="{content}">')
    assert (found.noindex, found.nofollow) == (noindex, nofollow)


@pytest.mark.parametrize("href", ["http://10.0.0.1/", "http://[::1]/", "javascript:x", ""])
def test_a_canonical_address_that_may_not_be_used_is_none(href):
    assert read(f'<link rel=canonical href="{href}">').canonical is None


def test_long_values_are_cut():
    found = read(f'<title>{"t" * 9000}</title><meta name=description content="{"d" * 9000}">')
    assert len(found.title) == metadata.MAX_VALUE_CHARACTERS
    assert len(found.values["description"]) == metadata.MAX_VALUE_CHARACTERS
