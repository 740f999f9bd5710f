"""One meaning per URL: every known trick with its verdict, links, canonical forms."""

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import urls
from jobs.addresses import AddressPolicy
from jobs.urls import UrlRefused
from tests.support.hostile_urls import ALLOWED, BLOCKED, INVALID, SPACED

PUBLIC = AddressPolicy()
LOOPBACK = AddressPolicy.of(["127.0.0.0/8", "::1/128"])
SUITES = Path(os.environ.get("PAGETOLL_SUITES", "../shared/suites"))


@pytest.mark.parametrize("text", [*INVALID, *SPACED])
@pytest.mark.parametrize("policy", [PUBLIC, LOOPBACK], ids=["public", "loopback"])
def test_a_url_without_one_meaning_is_invalid_everywhere(text, policy):
    with pytest.raises(UrlRefused) as refusal:
        urls.parse_target(text, policy=policy)
    assert refusal.value.code == "invalid_url"


@pytest.mark.parametrize("text", BLOCKED)
def test_a_url_that_points_inside_is_blocked(text):
    with pytest.raises(UrlRefused) as refusal:
        urls.parse_target(text, policy=PUBLIC)
    assert refusal.value.code == "blocked"


@pytest.mark.parametrize(("text", "expected"), ALLOWED.items())
def test_a_public_url_is_rebuilt_from_its_parts(text, expected):
    target = urls.parse_target(text, policy=PUBLIC)
    assert target.url == expected
    assert target == urls.parse_target(expected, policy=PUBLIC)


@pytest.mark.parametrize("text", [*INVALID, *SPACED, *BLOCKED])
def test_a_refusal_is_a_sentence_that_repeats_nothing(text):
    with pytest.raises(UrlRefused) as refusal:
        urls.parse_target(text, policy=PUBLIC)
    message = refusal.value.message
    assert message.isprintable()
    assert message.endswith(".")
    assert not text.strip() or text not in message


def test_a_target_knows_its_parts():
    target = urls.parse_target("https://Public.Example:8443/a/b?c=d&e#f", policy=PUBLIC)
    assert (target.scheme, target.host, target.port) == ("https", "public.example", 8443)
    assert (target.path, target.query) == ("/a/b", "c=d&e")
    assert target.origin == "https://public.example:8443"
    assert urls.parse_target("http://[2606:4700::1]/", policy=PUBLIC).host == "2606:4700::1"
    assert urls.parse_target("http://a.example:80/", policy=PUBLIC).origin == "http://a.example"


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8900/",
        "http://localhost:9000/",
        "http://a.localhost:9000/",
        "http://[::1]:5/",
    ],
)
def test_an_opened_network_lifts_the_rules_of_port_and_name(text):
    assert urls.parse_target(text, policy=LOOPBACK).url == text


@pytest.mark.parametrize(
    "text", ["http://10.0.0.1/", "http://public.example:22/", "http://redis/", "http://8.8.8.8:22/"]
)
def test_an_opened_network_lifts_nothing_else(text):
    with pytest.raises(UrlRefused) as refusal:
        urls.parse_target(text, policy=LOOPBACK)
    assert refusal.value.code == "blocked"


def test_a_mapped_address_is_never_a_spelling_for_an_opened_one():
    with pytest.raises(UrlRefused) as refusal:
        urls.parse_target("http://[::ffff:127.0.0.1]/", policy=LOOPBACK)
    assert refusal.value.code == "invalid_url"


def test_a_closed_name_is_blocked():
    policy = AddressPolicy.of([], deny_names=["Gateway.Example"])
    with pytest.raises(UrlRefused) as refusal:
        urls.parse_target("http://gateway.example./", policy=policy)
    assert refusal.value.code == "blocked"


BASE = urls.parse_target("http://public.example/docs/page?x=1", policy=PUBLIC)

LINKS = {
    "": "http://public.example/docs/page?x=1",
    "#top": "http://public.example/docs/page?x=1",
    "/": "http://public.example/",
    "/a/b.html#frag": "http://public.example/a/b.html",
    "/a?b=c/../d": "http://public.example/a?b=c/../d",
    "/a/../b": "http://public.example/b",
    "/a/%2e%2e/b": "http://public.example/b",
    "/.hidden": "http://public.example/.hidden",
    "/a b": "http://public.example/a%20b",
    "/é": "http://public.example/%C3%A9",
    "/a?it's": "http://public.example/a?it%27s",
    "/a?": "http://public.example/a",
    "\n /a\tb \r\n": "http://public.example/ab",
    "next": "http://public.example/docs/next",
    "../up": "http://public.example/up",
    "./same/": "http://public.example/docs/same/",
    "?y=2": "http://public.example/docs/page?y=2",
    "back\\slash": "http://public.example/docs/back/slash",
    "//other.example/x": "http://other.example/x",
    "HTTPS://Other.example/a b": "https://other.example/a%20b",
    " http://other.example": "http://other.example/",
    "http://other.example/a\\b": "http://other.example/a/b",
}


@pytest.mark.parametrize(("href", "expected"), LINKS.items())
def test_a_link_is_joined_to_its_page(href, expected):
    assert urls.resolve_link(BASE, href, policy=PUBLIC).url == expected


@pytest.mark.parametrize("href", ["mailto:a@b.example", "javascript:void(0)", "tel:1", "data:,x"])
def test_a_link_to_no_page_is_none(href):
    assert urls.resolve_link(BASE, href, policy=PUBLIC) is None


@pytest.mark.parametrize("href", ["gopher://127.0.0.1/", "file:///etc/passwd", "JavaScript:x"])
def test_a_link_of_a_foreign_scheme_is_none(href):
    assert urls.resolve_link(BASE, href, policy=LOOPBACK) is None


@pytest.mark.parametrize(
    "href",
    [
        "http://127.1/",
        "http://2130706433:8900/",
        "//0x7f.1/",
        "\\\\127.0.0.1",
        "/\\127.0.0.1/",
        "http:\\\\127.0.0.1",
        "http:///127.0.0.1/",
        "http:127.0.0.1/",
        "http:page",
        "http://127.0.0.1\\@public.example/",
        "http://user@public.example/",
        "http://pub\x00lic.example/",
        "http://\N{FULLWIDTH DIGIT ONE}\N{FULLWIDTH DIGIT TWO}\N{FULLWIDTH DIGIT SEVEN}.0.0.1/",
        "/" + "a" * 2048,
        "b" * 2048,
        "/\ud800",
    ],
)
def test_a_link_with_a_loosely_spelt_host_is_refused(href):
    with pytest.raises(UrlRefused) as refusal:
        urls.resolve_link(BASE, href, policy=LOOPBACK)
    assert refusal.value.code == "invalid_url"


@pytest.mark.parametrize(
    "href", ["//127.0.0.1/", "http://[::1]/", "http://localhost/", "//a.example:22/"]
)
def test_a_link_inside_is_blocked(href):
    with pytest.raises(UrlRefused) as refusal:
        urls.resolve_link(BASE, href, policy=PUBLIC)
    assert refusal.value.code == "blocked"


CANONICAL = {
    "http://public.example/": "http://public.example/",
    "http://WWW.Public.example:80/A/": "http://www.public.example/A/",
    "http://public.example/%7euser/%c3%a9%2f": "http://public.example/~user/%C3%A9%2F",
    "http://public.example/?b=2&a=1": "http://public.example/?a=1&b=2",
    "http://public.example/?a=2&b&a=1": "http://public.example/?a=2&a=1&b",
    "http://public.example/?utm_source=x&UTM_Medium=y&id=1": "http://public.example/?id=1",
    "http://public.example/?gclid=1&fbclid=2&msclkid=3&mc_cid=4&yclid=5": "http://public.example/",
    "http://public.example/?%75tm_source=x": "http://public.example/",
    "http://public.example/?&&a=1&": "http://public.example/?a=1",
    "http://public.example/a;jsessionid=1F?b=1": "http://public.example/a?b=1",
    "http://public.example/a;v=1/b": "http://public.example/a;v=1/b",
    "http://public.example/?PHPSESSID=abc&q=1": "http://public.example/?q=1",
    "http://public.example/?sid=0123456789abcdef0": "http://public.example/",
    "http://public.example/?sid=7": "http://public.example/?sid=7",
    "http://public.example/?q=a%26b%3dc": "http://public.example/?q=a%26b%3Dc",
}


@pytest.mark.parametrize(("text", "expected"), CANONICAL.items())
def test_canonical_urls_are_one_spelling(text, expected):
    canonical = urls.canonical_url(urls.parse_target(text, policy=PUBLIC))
    assert canonical == expected
    assert urls.canonical_url(urls.parse_target(canonical, policy=PUBLIC)) == canonical


def test_a_canonical_url_may_drop_its_query():
    assert urls.canonical_url(BASE, query="strip") == "http://public.example/docs/page"


def test_a_key_is_sixteen_bytes_of_the_canonical_url():
    assert len(urls.url_key("http://a.example/")) == 16
    assert urls.url_key("http://a.example/") != urls.url_key("http://a.example/b")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("a.b.example.co.uk", "example.co.uk"),
        ("www.example.com", "example.com"),
        ("example.com", "example.com"),
        ("someone.github.io", "someone.github.io"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
    ],
)
def test_the_registrable_domain_follows_the_public_suffix_list(host, expected):
    assert urls.registrable_domain(host) == expected


HREF = st.text(alphabet="/.?#%2eE\\:@ab&=' é;", max_size=24)


@given(HREF.map("/".__add__))
def test_the_short_way_for_plain_links_gives_what_the_long_way_gives(href):
    absolute = f"http://public.example{href}"
    if href[1:2] in ("/", "\\"):
        return
    joined = urls.resolve_link(BASE, href, policy=PUBLIC)
    assert joined == urls.resolve_link(BASE, absolute, policy=PUBLIC)


@given(st.text(alphabet="htp:/\\@[]%.?#127.0xAéa-_\n ", max_size=40))
def test_whatever_is_accepted_means_the_same_to_another_parser(rest):
    try:
        target = urls.parse_target(f"http://{rest}", policy=PUBLIC)
    except UrlRefused:
        return
    parts = urlsplit(target.url)
    assert (parts.scheme, parts.hostname) == (target.scheme, target.host)
    assert target == urls.parse_target(target.url, policy=PUBLIC)


def test_every_public_parsing_case_is_refused_or_means_what_it_should():
    path = SUITES / "urls" / "urltestdata.json"
    if not path.exists():
        pytest.skip(f"the public URL cases are not at {path} (PAGETOLL_SUITES)")
    cases = [case for case in json.loads(path.read_text()) if isinstance(case, dict)]
    accepted = 0
    for case in cases:
        try:
            target = urls.parse_target(case["input"], policy=PUBLIC)
        except UrlRefused:
            continue
        accepted += 1
        assert not case.get("failure"), case["input"]
        expected = case["hostname"].strip("[]").removesuffix(".")
        assert (target.host, target.path) == (expected, case["pathname"]), case["input"]
        assert f"?{target.query}" in (case["search"], "?" + case["search"])
    assert accepted > 50
