"""The boundary of a crawl and the customer's patterns."""

import pytest

from jobs import scope, urls
from jobs.addresses import AddressPolicy
from jobs.scope import Scope
from runtime.errors import Refusal

POLICY = AddressPolicy.of(["127.0.0.0/8", "::1/128"])


def target(text):
    return urls.parse_target(text, policy=POLICY)


INSIDE = [
    ("host", "http://a.example/x/y", "http://a.example/z"),
    ("host", "http://a.example/", "http://www.a.example/"),
    ("host", "http://www.a.example/", "http://a.example/"),
    ("host", "http://a.example/", "https://a.example/"),
    ("host", "http://127.0.0.1:9000/", "http://127.0.0.1:9000/b"),
    ("subdomains", "http://a.example.co.uk/", "https://b.c.example.co.uk/"),
    ("subdomains", "http://127.0.0.1:9000/", "http://127.0.0.1:9001/"),
    ("path", "http://a.example/docs/intro", "http://a.example/docs/other/deep"),
    ("path", "http://a.example/docs/", "http://a.example/docs/"),
    ("any", "http://a.example/", "http://b.example/"),
]

OUTSIDE = [
    ("host", "http://a.example/", "http://b.a.example/"),
    ("host", "http://www.a.example/", "http://ww2.a.example/"),
    ("host", "http://a.example/", "http://a.example:8080/"),
    ("host", "http://127.0.0.1:9000/", "http://127.0.0.1:9001/"),
    ("host", "http://127.0.0.1:9000/", "http://localhost:9000/"),
    ("subdomains", "http://a.example.co.uk/", "http://b.co.uk/"),
    ("subdomains", "http://me.github.io/", "http://you.github.io/"),
    ("subdomains", "http://127.0.0.1/", "http://127.1.0.1/"),
    ("path", "http://a.example/docs/intro", "http://a.example/docs"),
    ("path", "http://a.example/docs/intro", "http://a.example/docs-old/x"),
    ("path", "http://a.example/docs/intro", "http://b.example/docs/x"),
]


@pytest.mark.parametrize(("name", "start", "url"), INSIDE)
def test_a_url_inside_the_boundary_is_kept(name, start, url):
    assert Scope(target(start), name).exclusion(target(url)) is None


@pytest.mark.parametrize(("name", "start", "url"), OUTSIDE)
def test_a_url_outside_the_boundary_is_out_of_scope(name, start, url):
    assert Scope(target(start), name).exclusion(target(url)) == "out_of_scope"


def test_patterns_are_searched_in_the_whole_url():
    bounds = Scope(
        target("http://a.example/"),
        "host",
        include=scope.compile_patterns(["/docs/", r"\?id=\d+$"]),
        exclude=scope.compile_patterns([r"\.pdf$", "^https:"]),
    )
    assert bounds.exclusion(target("http://a.example/docs/x")) is None
    assert bounds.exclusion(target("http://a.example/p?id=12")) is None
    assert bounds.exclusion(target("http://a.example/p?id=x")) == "out_of_scope"
    assert bounds.exclusion(target("http://a.example/docs/x.pdf")) == "out_of_scope"
    assert bounds.exclusion(target("https://a.example/docs/x")) == "out_of_scope"


def test_matches_say_what_decided():
    bounds = Scope(
        target("http://a.example/"),
        "host",
        include=scope.compile_patterns(["/docs/"]),
        exclude=scope.compile_patterns(["pdf"]),
    )
    assert bounds.matches(target("http://a.example/docs/x.pdf")) == {
        "url": "http://a.example/docs/x.pdf",
        "reason": "out_of_scope",
        "within_boundary": True,
        "include_pattern": "/docs/",
        "exclude_pattern": "pdf",
    }
    assert bounds.matches(target("http://a.example/docs/"))["reason"] is None


@pytest.mark.parametrize("text", ["^(a+)+$", "(x+x+)+y", r"^(\w+\s?)*$", "(.*a){20}$"])
def test_patterns_that_explode_elsewhere_are_taken(text):
    (pattern,) = scope.compile_patterns([text])
    pattern.found_in("http://a.example/" + "a" * 2000 + "!")


@pytest.mark.parametrize(
    "text",
    ["(?=a)b", r"(a)\1", "a{1001}", "(a{500}){500}", "(a", "", "x" * 513, "a\nb", "\x1b[31m"],
)
def test_a_pattern_that_cannot_be_used_is_refused_with_its_place(text, capfd):
    with pytest.raises(Refusal) as refusal:
        scope.compile_patterns(["fine", text], path="exclude_patterns")
    assert refusal.value.code == "invalid_request"
    assert refusal.value.details == {"path": "exclude_patterns[1]"}
    assert refusal.value.message.isprintable()
    assert capfd.readouterr().err == ""


def test_the_engines_own_words_are_passed_on_without_tricks():
    with pytest.raises(Refusal, match=r"missing \)"):
        scope.compile_patterns(["(a"])
    with pytest.raises(Refusal, match=r"\\x202e"):
        scope.compile_patterns(["(?P<\u202e"])


def test_more_than_twenty_patterns_are_refused():
    assert len(scope.compile_patterns(["a"] * 20)) == 20
    with pytest.raises(Refusal):
        scope.compile_patterns(["a"] * 21)
