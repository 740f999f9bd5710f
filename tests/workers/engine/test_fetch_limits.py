"""The HTTP client against sites that send too much, too slowly or nonsense."""

import asyncio
import gzip

import pytest
import pytest_asyncio

from tests.support.site import LOOPBACK
from workers.engine.fetch import Fetcher, FetchLimits
from workers.engine.outcomes import FetchFailed

HASTY = FetchLimits(slow_after_seconds=0.05)
PAGE_BYTES = 1024 * 1024


@pytest_asyncio.fixture(loop_scope="session")
async def fetcher():
    async with Fetcher(LOOPBACK, FetchLimits(), "TestBot/1.0") as opened:
        yield opened


async def get(fetcher, where, *, timeout_seconds=20):
    return await fetcher.exchange(where, timeout_seconds=timeout_seconds, limit_bytes=PAGE_BYTES)


async def failure(fetcher, where, **options):
    with pytest.raises(FetchFailed) as caught:
        await get(fetcher, where, **options)
    return caught.value.reason, caught.value.detail


@pytest.mark.parametrize("times", [1, 2])
async def test_a_compressed_bomb_is_too_large(site, fetcher, times):
    body = b"\0" * (64 * PAGE_BYTES)
    for _ in range(times):
        body = gzip.compress(body)
    site.page("/", body, headers={"Content-Encoding": ", ".join(["gzip"] * times)})
    assert await failure(fetcher, site.target()) == ("limit_reached", "too_large")


async def test_two_hundred_codings_in_as_many_headers_are_too_large(site, fetcher):
    site.raw("/", b"HTTP/1.1 200 OK\r\n" + b"Content-Encoding: gzip\r\n" * 90 + b"\r\nx")
    assert await failure(fetcher, site.target()) == ("limit_reached", "too_large")


async def test_a_length_over_the_limit_is_refused_before_the_body(site, fetcher):
    never = asyncio.Event()

    async def announce(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        await never.wait()

    site.handle("/", announce)
    assert await failure(fetcher, site.target()) == ("limit_reached", "too_large")


async def test_a_body_without_an_end_is_too_large(site, fetcher):
    async def pour(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"8000\r\n" + b"x" * 0x8000 + b"\r\n")
            await writer.drain()

    site.handle("/", pour)
    assert await failure(fetcher, site.target()) == ("limit_reached", "too_large")


async def test_a_body_that_comes_too_slowly_is_given_up(site):
    never = asyncio.Event()

    async def drip(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")
        await never.wait()

    site.handle("/", drip)
    async with Fetcher(LOOPBACK, HASTY, "TestBot/1.0") as opened:
        assert await failure(opened, site.target()) == ("timeout", "slow")


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\nX: "])
async def test_an_answer_that_never_begins_is_a_timeout(site, fetcher, beginning):
    never = asyncio.Event()

    async def stall(_, writer):
        writer.write(beginning)
        await never.wait()

    site.handle("/", stall)
    assert await failure(fetcher, site.target(), timeout_seconds=0.1) == ("timeout", None)


async def test_early_hints_without_an_end_are_a_timeout(site, fetcher):
    async def hint(_, writer):
        while not writer.is_closing():
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
            await writer.drain()

    site.handle("/", hint)
    assert (await failure(fetcher, site.target(), timeout_seconds=0.2))[0] == "timeout"


@pytest.mark.parametrize(
    ("head", "detail"),
    [
        (b"X: y\r\n" * 101, "protocol"),
        (b"X: " + b"y" * 20_000 + b"\r\n", "protocol"),
        ((b"X: " + b"y" * 15_000 + b"\r\n") * 6, "headers"),
        (b"Content-Length: -1\r\n", "protocol"),
        (b"Content-Length: 1\r\nContent-Length: 2\r\n", "protocol"),
        (b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "protocol"),
        (b"Content-Length: 9\r\n", "truncated"),
        (b"Transfer-Encoding: chunked\r\n", "truncated"),
    ],
)
async def test_an_answer_that_is_not_sound_is_an_upstream_error(site, fetcher, head, detail):
    site.raw("/", b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
    assert await failure(fetcher, site.target()) == ("upstream_error", detail)


async def test_what_follows_a_body_never_answers_the_next_request(site, fetcher):
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    site.answers["/"] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + forged
    site.page("/next", "real")
    assert (await get(fetcher, site.target())).body == b"ok"
    assert (await get(fetcher, site.target("/next"))).body == b"real"
