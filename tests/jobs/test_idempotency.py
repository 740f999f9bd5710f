"""What makes two bodies the same: their meaning after defaults, not their spelling."""

import msgspec
import pytest

from jobs import idempotency
from jobs.requests import CrawlRequest
from runtime.errors import Refusal


def read(text: str) -> bytes:
    return idempotency.request_hash(msgspec.json.decode(text, type=CrawlRequest))


def test_spelling_and_defaults_do_not_matter() -> None:
    plain = read('{"url": "https://a.example/", "max_pages": 5}')

    assert plain == read('{"max_pages":5,\n"url":"https://a.example/"}')
    assert plain == read('{"url": "https://a.example/", "max_pages": 5, "scope": "host"}')
    assert read('{"url":"u","max_pages":1,"metadata":{"a":"1","b":"2"}}') == read(
        '{"url":"u","max_pages":1,"metadata":{"b":"2","a":"1"}}'
    )


def test_another_meaning_is_another_body() -> None:
    assert read('{"url": "u", "max_pages": 5}') != read('{"url": "u", "max_pages": 6}')


@pytest.mark.parametrize("key", ["", "a" * 256, "a b", "a\n", "é", "a\x7f"])
def test_a_key_is_visible_ascii(key) -> None:
    with pytest.raises(Refusal):
        idempotency.check_key(key)


@pytest.mark.parametrize("key", ["a", "!" * 255, "7f3c-~"])
def test_good_keys_are_kept_as_they_are(key) -> None:
    assert idempotency.check_key(key) == key
