"""The HTTP client against a site that answers, and one that lies."""

import asyncio
import gzip
import socket
import ssl
from datetime import timedelta

import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from jobs import urls
from jobs.addresses import AddressPolicy
from jobs.urls import Target
from runtime import clock
from tests.support.site import LOOPBACK, Site
from workers.engine.fetch import Fetcher, FetchLimits
from workers.engine.outcomes import FetchFailed

LIMITS = FetchLimits()
PAGE_BYTES = 1024 * 1024


@pytest_asyncio.fixture(loop_scope="session")
async def fetcher():
    async with Fetcher(LOOPBACK, LIMITS, "TestBot/1.0") as opened:
        yield opened


@pytest.fixture
def own_certificate(tmp_path):
    """A server's TLS context for 127.0.0.1 that no authority has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    now = clock.now()
    certificate = (
        builder.not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem = key.private_bytes(*plain) + certificate.public_bytes(Encoding.PEM)
    (tmp_path / "server.pem").write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    return context


def target(text):
    return urls.parse_target(text, policy=LOOPBACK)


def named(site, host):
    """A target whose name only a scripted resolver knows."""
    url = f"http://{host}:{site.port}/"
    return Target(url=url, scheme="http", host=host, port=site.port, path="/", query="")


async def get(fetcher, where, *, timeout_seconds=20, limit_bytes=PAGE_BYTES, **options):
    return await fetcher.exchange(
        where, timeout_seconds=timeout_seconds, limit_bytes=limit_bytes, **options
    )


async def failure(fetcher, where, **options):
    with pytest.raises(FetchFailed) as caught:
        await get(fetcher, where, **options)
    return caught.value.reason, caught.value.detail


async def test_a_page_comes_with_its_headers_and_body(site, fetcher):
    site.page("/a?b=%20c", "hello", headers={"X-One": "1", "x-one": "2"})
    answer = await get(fetcher, site.target("/a?b=%20c"))
    assert (answer.status, answer.body, answer.body_read) == (200, b"hello", True)
    assert answer.headers["x-one"] == "1, 2"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.url == site.target("/a?b=%20c")
    assert (answer.location, answer.hops) == (None, ())


async def test_a_request_says_who_asks_and_what_can_be_decoded(site, fetcher):
    site.page("/")
    await get(fetcher, site.target(), headers=[("X-Mine", "1"), ("Accept-Encoding", "br")])
    (visit,) = site.visits
    assert visit.headers["user-agent"] == "TestBot/1.0"
    assert visit.headers["accept-encoding"] == "gzip, deflate, zstd"
    assert visit.headers["x-mine"] == "1"
    assert visit.headers["host"] == f"127.0.0.1:{site.port}"


async def test_a_connection_is_used_again_and_cookies_are_not_kept(site, fetcher):
    site.page("/", "x", headers={"Set-Cookie": "a=b"})
    await get(fetcher, site.target())
    await get(fetcher, site.target())
    first, second = site.visits
    assert first.connection == second.connection
    assert "cookie" not in second.headers


async def test_a_proxy_of_the_environment_is_not_used(site, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    site.page("/", "direct")
    async with Fetcher(LOOPBACK, LIMITS, "TestBot/1.0") as opened:
        assert (await get(opened, site.target())).body == b"direct"


async def test_a_coded_body_is_decoded(site, fetcher):
    site.page("/", gzip.compress(b"plain"), headers={"Content-Encoding": "gzip"})
    assert (await get(fetcher, site.target())).body == b"plain"


async def test_bytes_that_are_no_text_do_not_survive_in_headers(site, fetcher):
    site.raw("/", b"HTTP/1.1 200 OK\r\nX-Odd: \xff\r\nContent-Length: 0\r\n\r\n")
    assert (await get(fetcher, site.target())).headers["x-odd"] == "\ufffd"


@pytest.mark.parametrize(
    "content_type", ["image/png", "Video/mp4", "audio/ogg", "font/woff2", "application/pdf"]
)
async def test_the_body_of_what_cannot_be_a_page_is_not_read(site, fetcher, content_type):
    never = asyncio.Event()

    async def picture(_, writer):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: 99999999\r\n"
        writer.write(head.encode() + b"\r\nx")
        await never.wait()

    site.handle("/", picture)
    answer = await get(fetcher, site.target())
    assert (answer.status, answer.body, answer.body_read) == (200, b"", False)


@pytest.mark.parametrize(
    ("body", "read"),
    [(b"\xef\xbb\xbf \n<html>", True), (b"<?xml", True), (b"\x1f\x8b", False), (b"PK", False)],
)
async def test_an_unknown_type_is_read_where_it_begins_like_markup(site, fetcher, body, read):
    site.page("/", body, content_type="application/octet-stream")
    answer = await get(fetcher, site.target())
    assert (answer.body, answer.body_read) == (body if read else b"", read)


async def test_a_download_is_read_whatever_its_type(site, fetcher):
    site.redirect("/", "/map.gz")
    site.page("/map.gz", b"\x1f\x8bxyz", content_type="application/octet-stream")
    answer = await fetcher.download(site.target(), timeout_seconds=20, limit_bytes=99)
    assert answer.body == b"\x1f\x8bxyz"
    assert answer.hops == (site.target().url,)


async def test_a_download_may_be_cut_at_its_limit(site, fetcher):
    site.page("/", b"x" * 100, content_type=None)
    answer = await fetcher.download(
        site.target(), timeout_seconds=20, limit_bytes=40, truncate=True
    )
    assert answer.body == b"x" * 40
    with pytest.raises(FetchFailed, match="larger"):
        await fetcher.download(site.target(), timeout_seconds=20, limit_bytes=40)


async def test_a_broken_or_huge_error_page_does_not_hide_the_error(site, fetcher):
    site.page("/large", b"x" * (2 * PAGE_BYTES), status=404)
    site.page("/broken", b"not gzip", status=503, headers={"Content-Encoding": "gzip"})
    site.raw("/short", b"HTTP/1.1 410 Gone\r\nContent-Length: 9\r\n\r\nx")
    assert len((await get(fetcher, site.target("/large"))).body) == 64 * 1024
    assert (await get(fetcher, site.target("/broken"))).status == 503
    assert (await get(fetcher, site.target("/short"))).status == 410


async def test_a_closed_port_is_refused(fetcher):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    where = target(f"http://127.0.0.1:{port}/")
    assert await failure(fetcher, where) == ("upstream_error", "refused")


async def test_a_connection_without_an_answer_is_refused(site, fetcher):
    site.raw("/", b"")
    assert await failure(fetcher, site.target()) == ("upstream_error", "refused")


async def test_a_port_that_speaks_no_tls_is_a_tls_failure(fetcher):
    async def greet(reader, writer):
        writer.write(b"220 mail.example\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        where = target(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        assert await failure(fetcher, where) == ("upstream_error", "tls")


async def test_a_certificate_that_nobody_signed_is_a_tls_failure(fetcher, own_certificate):
    async with Site(tls=own_certificate) as secret:
        secret.page("/", "x")
        assert await failure(fetcher, secret.target()) == ("upstream_error", "tls")
    assert secret.visits == []


async def test_an_address_that_the_policy_denies_is_not_connected_to(site):
    site.page("/", "secret")
    async with Fetcher(AddressPolicy(), LIMITS, "TestBot/1.0") as public:
        assert await failure(public, site.target()) == ("blocked", None)
        localhost = target(f"http://localhost:{site.port}/")
        assert await failure(public, localhost) == ("blocked", None)
    assert site.visits == []


async def test_a_name_that_leads_inside_is_blocked_even_beside_a_good_address(site):
    async def lookup(name, port):
        return ["127.0.0.1", "10.0.0.1"]

    async with Fetcher(LOOPBACK, LIMITS, "TestBot/1.0", lookup) as guarded:
        assert await failure(guarded, named(site, "name.example")) == ("blocked", None)
    assert site.visits == []


async def test_an_answer_that_changes_is_not_asked_for_again(site):
    asked = []

    async def rebind(name, port):
        asked.append(name)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    site.page("/", "first")
    where = named(site, "name.example")
    async with Fetcher(LOOPBACK, LIMITS, "TestBot/1.0", rebind) as guarded:
        assert (await get(guarded, where)).body == b"first"
    assert asked == ["name.example."]
    assert site.visits[0].headers["host"] == f"name.example:{site.port}"
    async with Fetcher(LOOPBACK, LIMITS, "TestBot/1.0", rebind) as guarded:
        assert await failure(guarded, where) == ("blocked", None)


async def test_a_name_that_is_not_known_is_a_dns_failure(site):
    async def lookup(name, port):
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    async with Fetcher(LOOPBACK, LIMITS, "TestBot/1.0", lookup) as guarded:
        assert await failure(guarded, named(site, "a.example")) == ("upstream_error", "dns")


async def test_localhost_is_fetched_where_loopback_is_opened(site, fetcher):
    site.page("/", "here")
    assert (await get(fetcher, target(f"http://localhost:{site.port}/"))).body == b"here"


async def test_a_second_site_is_another_origin(site, fetcher):
    async with Site() as other:
        other.page("/", "other")
        assert (await get(fetcher, other.target())).body == b"other"
    assert site.visits == []
