"""What may be asked for: defaults, bounds, and refusals that name their field."""

import msgspec
import pytest

from jobs import requests
from jobs.addresses import AddressPolicy
from jobs.requests import CrawlRequest, PlanLimits
from runtime.errors import Refusal

LIMITS = PlanLimits(max_pages=100, max_timeout_seconds=600, may_ignore_robots=False)
POLICY = AddressPolicy()


def decode(**fields) -> CrawlRequest:
    body = {"url": "https://example.com/", "max_pages": 5} | fields
    return msgspec.json.decode(msgspec.json.encode(body), type=CrawlRequest)


def test_defaults_are_the_contracts() -> None:
    request = decode()

    assert (request.scope, request.sitemap, request.query, request.robots) == (
        "host",
        "include",
        "keep",
        "obey",
    )
    assert (request.timeout_seconds, request.only_main_content) == (300, True)


@pytest.mark.parametrize("missing", ["url", "max_pages"])
def test_nothing_that_costs_has_a_default(missing) -> None:
    body = {"url": "https://example.com/", "max_pages": 5}
    del body[missing]

    with pytest.raises(msgspec.ValidationError, match=missing):
        msgspec.json.decode(msgspec.json.encode(body), type=CrawlRequest)


@pytest.mark.parametrize(
    "fields",
    [
        {"max_pages": 0},
        {"max_pages": -1},
        {"max_pages": 2**63},
        {"max_pages": True},
        {"max_pages": "5"},
        {"max_pages": 5.5},
        {"max_pages": None},
        {"max_depth": -1},
        {"max_rounds": 0},
        {"scope": "world"},
        {"formats": []},
        {"formats": ["screenshot"]},
        {"include": ["x"] * 21},
        {"include": ["x" * 513]},
        {"timeout_seconds": 0},
        {"delay_seconds": -0.1},
        {"max_credits": 0},
        {"tags": ["a\nb"]},
        {"metadata": {"k": "v\0"}},
        {"headers": {"accept": "a\r\nHost: b"}},
        {"max_page": 5},
    ],
)
def test_what_is_out_of_bounds_is_refused(fields) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(**fields)


@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({"max_pages": 101}, "invalid_request", "$.max_pages"),
        ({"timeout_seconds": 601}, "invalid_request", "$.timeout_seconds"),
        ({"robots": "ignore"}, "invalid_request", "$.robots"),
        ({"render": "browser"}, "invalid_request", "$.render"),
        ({"include": ["("]}, "invalid_request", "$.include"),
        ({"exclude": ["(?=x)"]}, "invalid_request", "$.exclude"),
        ({"headers": {"Host": "x"}}, "invalid_request", "$.headers"),
        ({"headers": {"Metadata-Flavor": "Google"}}, "invalid_request", "$.headers"),
        ({"headers": {"X-Forwarded-For": "1"}}, "invalid_request", "$.headers"),
        ({"url": "ftp://example.com/"}, "blocked", "$.url"),
        ({"url": "http://user:pass@example.com/"}, "invalid_url", "$.url"),
        ({"url": "http://127.0.0.1/"}, "blocked", "$.url"),
        ({"url": "http://2130706433/"}, "invalid_url", "$.url"),
        ({"url": "http://"}, "invalid_url", "$.url"),
    ],
)
def test_a_refusal_names_its_field(fields, code, path) -> None:
    with pytest.raises(Refusal) as refused:
        requests.validate(decode(**fields), policy=POLICY, limits=LIMITS)

    assert refused.value.code == code
    assert [error["path"] for error in refused.value.details["errors"]] == [path]


def test_a_good_request_gives_its_start_url() -> None:
    target = requests.validate(
        decode(url="HTTPS://Example.com:443/a?b=1#c"), policy=POLICY, limits=LIMITS
    )

    assert target.url == "https://example.com/a?b=1"
