"""The links of a page: absolute, once each, and safe."""

import pytest

from jobs import urls
from jobs.addresses import AddressPolicy
from workers.engine.extract import html, links

POLICY = AddressPolicy()
PAGE = urls.parse_target("https://example.com/docs/page.html?q=1", policy=POLICY)


def find(markup, *, limit=links.MAX_LINKS):
    tree = html.parse(markup)
    base = links.base_of(tree, PAGE, policy=POLICY)
    return links.find(tree, base, policy=POLICY, limit=limit)


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("/a", "https://example.com/a"),
        ("a", "https://example.com/docs/a"),
        ("../a", "https://example.com/a"),
        ("?x", "https://example.com/docs/page.html?x"),
        ("#part", "https://example.com/docs/page.html?q=1"),
        ("//other.example/a", "https://other.example/a"),
        (" http://other.example/a#b ", "http://other.example/a"),
    ],
)
def test_a_link_is_absolute_and_has_no_fragment(href, url):
    assert [link.url for link in find(f'<a href="{href}">x</a>').links] == [url]


@pytest.mark.parametrize("href", ["mailto:a@b.example", "javascript:x()", "tel:1", "data:,x", ""])
def test_what_cannot_be_fetched_is_no_link(href):
    found = find(f'<p><a href="{href}">x</a>').links
    assert [link.url for link in found] == ([PAGE.url] if href == "" else [])


def test_each_address_is_listed_once_with_its_first_text():
    found = find('<a href="/a"> One\n <b>two</b></a><a href="/a#x">again</a><a href=/b>b</a>')
    assert [(link.url, link.text) for link in found.links] == [
        ("https://example.com/a", "One two"),
        ("https://example.com/b", "b"),
    ]


def test_an_area_and_a_picture_are_links_too():
    found = find('<map><area href="/m"></map><a href="/p"><img src=x alt=" A picture "></a>')
    assert [(link.target.path, link.text) for link in found.links] == [
        ("/m", ""),
        ("/p", "A picture"),
    ]


def test_rel_is_read_as_words():
    found = find('<a href="/a" rel="NoFollow external">x</a><a href="/b" rel="nofollows">y</a>')
    assert [link.nofollow for link in found.links] == [True, False]


def test_the_base_of_the_page_counts():
    assert find('<base href="/other/"><a href="x">x</a>').links[0].target.path == "/other/x"


@pytest.mark.parametrize("base", ["http://169.254.169.254/", "javascript:x", "http://[", "data:,"])
def test_a_base_that_may_not_be_used_is_ignored(base):
    assert find(f'<base href="{base}"><a href="/x">x</a>').links[0].url == "https://example.com/x"


def test_links_to_internal_addresses_are_told_apart():
    found = find('<a href="http://10.0.0.1/">x</a><a href="http://0x7f.1/">y</a><a href=/a>z</a>')
    assert [link.target.path for link in found.links] == ["/a"]
    assert [refused.reason for refused in found.refused] == ["blocked", "invalid_url"]


def test_no_more_links_are_given_than_the_limit():
    found = find("".join(f'<a href="/{n}">x</a>' for n in range(9)), limit=4)
    assert len(found.links) == 4
    assert found.truncated


@pytest.mark.parametrize(
    "href", ["javascript:x()", " JaVa&#10;Script:x()", "vbscript:x", "data:text/html,x"]
)
def test_script_addresses_are_taken_out_of_the_tree(href):
    markup = f'<a href="/a">a</a><a href="{href}">one</a><a href="{href}">two</a>'
    for limit in (1, 10):
        tree = html.parse(markup)
        links.find(tree, PAGE, policy=POLICY, limit=limit)
        assert [node.text() for node in tree.css("a[href]")] == ["a"]


def test_addresses_for_people_stay_in_the_tree():
    tree = html.parse('<a href="mailto:a@b.example">x</a><a href="a:b/c">y</a>')
    links.find(tree, PAGE, policy=POLICY)
    assert [node.text() for node in tree.css("a[href]")] == ["x"]
