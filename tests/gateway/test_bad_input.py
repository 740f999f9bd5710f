"""What bad input gets: a code, the place, and nothing moved."""

from typing import Any

import msgspec
import pytest

from runtime import ids
from runtime.database import Database
from tests.gateway.conftest import Client
from tests.support import builders
from tests.support.problems import problem_of
from tests.support.processes import OwnProcess

GOOD = {"url": "https://example.com/", "max_pages": 5}
SECRET = "hunter2-never-in-a-log"
DEEP = b'{"url": "https://example.com/", "max_pages": 5, "tags": ' + b"[" * 10_000 + b"]" * 10_000


def body(**changes: Any) -> bytes:
    return msgspec.json.encode({**GOOD, **changes})


def without(field: str) -> bytes:
    return msgspec.json.encode({name: value for name, value in GOOD.items() if name != field})


def raw_max_pages(text: str) -> bytes:
    return b'{"url": "https://example.com/", "max_pages": ' + text.encode() + b"}"


BAD_BODIES = {
    "an unknown field": (body(max_page=5), 422, "invalid_request", "$.max_page"),
    "no max_pages": (without("max_pages"), 422, "invalid_request", "$.max_pages"),
    "no url": (without("url"), 422, "invalid_request", "$.url"),
    "a url of the wrong type": (body(url=5), 422, "invalid_request", "$.url"),
    "a number as text": (body(max_pages="5"), 422, "invalid_request", "$.max_pages"),
    "no page": (body(max_pages=0), 422, "invalid_request", "$.max_pages"),
    "a negative number": (body(max_pages=-1), 422, "invalid_request", "$.max_pages"),
    "more than the plan": (body(max_pages=1_000_001), 422, "invalid_request", "$.max_pages"),
    "2^63": (body(max_pages=2**63), 422, "invalid_request", "$.max_pages"),
    "1e400": (raw_max_pages("1e400"), 422, "invalid_request", "$.max_pages"),
    "true for a number": (body(max_pages=True), 422, "invalid_request", "$.max_pages"),
    "50.0": (raw_max_pages("50.0"), 422, "invalid_request", "$.max_pages"),
    "NaN": (raw_max_pages("NaN"), 400, "invalid_request", "$"),
    "an unknown word": (body(scope="galaxy"), 422, "invalid_request", "$.scope"),
    "a broken pattern": (body(include=["(unclosed"]), 422, "invalid_request", "$.include"),
    "an endless tag": (body(tags=["x" * 65]), 422, "invalid_request", "$.tags[0]"),
    "NUL in a tag": (body(tags=["a\0"]), 422, "invalid_request", "$.tags[0]"),
    "a line break after a header": (
        body(headers={"Accept": "text/html\n"}),
        422,
        "invalid_request",
        "$.headers[...]",
    ),
    "a header of the connection": (
        body(headers={"Host": "x"}),
        422,
        "invalid_request",
        "$.headers",
    ),
    "a browser": (body(render="browser"), 422, "invalid_request", "$.render"),
    "a timeout beyond a day": (
        body(timeout_seconds=90_000),
        422,
        "invalid_request",
        "$.timeout_seconds",
    ),
    "credentials": (body(url=f"https://u:{SECRET}@example.com/"), 422, "invalid_url", "$.url"),
    "no host": (body(url="https:///path"), 422, "invalid_url", "$.url"),
    "no scheme": (body(url="example.com"), 422, "invalid_url", "$.url"),
    "another scheme": (body(url="ftp://example.com/"), 422, "blocked", "$.url"),
    "a file": (body(url="file:///etc/passwd"), 422, "blocked", "$.url"),
    "loopback": (body(url="http://127.0.0.1/"), 422, "blocked", "$.url"),
    "loopback by name": (body(url="http://localhost/"), 422, "blocked", "$.url"),
    "loopback in IPv6": (body(url="http://[::1]/"), 422, "blocked", "$.url"),
    "loopback as one number": (body(url="http://2130706433/"), 422, "invalid_url", "$.url"),
    "loopback in short": (body(url="http://127.1/"), 422, "invalid_url", "$.url"),
    "loopback in octal": (body(url="http://0177.0.0.1/"), 422, "invalid_url", "$.url"),
    "loopback in hexadecimal": (body(url="http://0x7f.0.0.1/"), 422, "invalid_url", "$.url"),
    "mapped loopback": (body(url="http://[::ffff:127.0.0.1]/"), 422, "blocked", "$.url"),
    "metadata of clouds": (body(url="http://169.254.169.254/"), 422, "blocked", "$.url"),
    "an odd port": (body(url="https://example.com:22/"), 422, "blocked", "$.url"),
    "nothing": (b"", 400, "invalid_request", "$"),
    "half of an object": (b'{"url": "https://exa', 400, "invalid_request", "$"),
    "an array": (b"[]", 422, "invalid_request", "$"),
    "broken UTF-8": (b'{"url": "\xff"}', 400, "invalid_request", "$"),
    "half a surrogate pair": (b'{"url": "\\ud800"}', 400, "invalid_request", "$"),
    "a bad place before bad form": (b'{"max_pages": "5", "url": ', 400, "invalid_request", "$"),
    "a deep nest": (DEEP + b"}", 400, "invalid_request", "$"),
    "a deep nest left open": (b'{"url":' * 10_000, 400, "invalid_request", "$"),
    "too much": (body(metadata={"a": "x" * 300_000}), 413, "invalid_request", "$"),
}


@pytest.mark.parametrize("case", BAD_BODIES)
async def test_a_bad_body_names_the_place_and_moves_nothing(
    case: str, system: Database, client: Client, gateway: OwnProcess
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    key = await builders.a_key(system, tenant.tenant_id)
    before = await builders.footprint(system, tenant.tenant_id)
    content, status, code, path = BAD_BODIES[case]

    answer = await client(key).post("/v1/crawls", content=content)

    problem = problem_of(answer, status, code)
    assert problem["errors"][0]["path"] == path
    assert problem["errors"][0]["message"]
    assert await builders.footprint(system, tenant.tenant_id) == before
    assert SECRET not in answer.text
    assert SECRET not in gateway.log
    assert key not in gateway.log


BAD_QUERIES = {
    "/v1/jobs?limit=0": ("invalid_request", "limit"),
    "/v1/jobs?limit=1001": ("invalid_request", "limit"),
    "/v1/jobs?limit=many": ("invalid_request", "limit"),
    "/v1/jobs?state=asleep": ("invalid_request", "state"),
    "/v1/jobs?kind=dance": ("invalid_request", "kind"),
    "/v1/jobs?tag=%00": ("invalid_request", "tag"),
    "/v1/jobs?created_after=2026-01-01": ("invalid_request", "created_after"),
    "/v1/jobs?created_after=2026-01-01T00:00:00": ("invalid_request", "created_after"),
    "/v1/jobs?created_before=0001-01-01T00:00:00Z": ("invalid_request", "created_before"),
    "/v1/credits/entries?kind=gift": ("invalid_request", "kind"),
    "/v1/credits/entries?job_id=7": ("invalid_request", "job_id"),
    "/v1/credits/entries?until=soon": ("invalid_request", "until"),
}


@pytest.mark.parametrize("target", BAD_QUERIES)
async def test_a_bad_query_names_the_parameter(
    target: str, system: Database, client: Client
) -> None:
    tenant = await builders.a_tenant(system)
    answer = await client(await builders.a_key(system, tenant.tenant_id)).get(target)
    code, path = BAD_QUERIES[target]
    assert problem_of(answer, 422, code)["errors"][0]["path"] == path


@pytest.mark.parametrize(
    "target",
    [
        "/v1/jobs?after=zzz",
        "/v1/jobs?after=MjAyNi0wMS0wMVQwMDowMDowMHwwMWEyMmJiOC01NWJkLTc2ZTctYjE3Mi1kOTg3MzQ5MGFiNDE",
        "/v1/jobs?after=%C3%A9",
        "/v1/credits/entries?after=first",
        "/v1/credits/entries?after=99999999999999999999",
        f"/v1/jobs/{ids.new_id()}/results?after=-2",
        f"/v1/jobs/{ids.new_id()}/results?after=3000000000",
    ],
)
async def test_a_bad_cursor_is_refused(target: str, system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system)
    answer = await client(await builders.a_key(system, tenant.tenant_id)).get(target)
    problem_of(answer, 400, "invalid_cursor")


@pytest.mark.parametrize("call", ["GET {}", "DELETE {}", "GET {}/results"])
async def test_a_bad_id_is_answered_as_an_unknown_one(
    call: str, system: Database, client: Client
) -> None:
    tenant = await builders.a_tenant(system)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    method, path = call.split()
    unknown = await mine.request(method, path.format(f"/v1/jobs/{ids.new_id()}"))
    expected = problem_of(unknown, 404, "not_found")
    for text in ("7", "not-a-uuid", f"{{{ids.new_id()}}}", "%00", ids.new_id().hex):
        answer = await mine.request(method, path.format(f"/v1/jobs/{text}"))
        assert {**answer.json(), "request_id": ""} == {**expected, "request_id": ""}


async def test_unknown_paths_and_methods_are_problems_too(client: Client) -> None:
    problem_of(await client().get("/nothing"), 404, "not_found")
    answer = await client().put("/v1/jobs")
    problem_of(answer, 405, "invalid_request")
    assert "GET" in answer.headers["Allow"]


async def test_a_request_id_is_taken_over_or_made(client: Client) -> None:
    mine = client()
    taken = await mine.get("/nothing", headers={"X-Request-Id": "call-7.b_C"})
    assert taken.headers["X-Request-Id"] == taken.json()["request_id"] == "call-7.b_C"
    for odd in ("two words", "x" * 65, "ü".encode()):
        made = await mine.get("/nothing", headers={"X-Request-Id": odd})
        assert made.headers["X-Request-Id"] == made.json()["request_id"] != odd
    assert (await mine.get("/healthz")).headers["X-Request-Id"]


@pytest.mark.parametrize(
    "path", ["/v1/jobs?stat=queued", "/v1/credits/entries?jobid=1", "/v1/credits?x="]
)
async def test_a_parameter_that_a_call_does_not_have_is_refused_by_name(
    path: str, system: Database, client: Client
) -> None:
    tenant = await builders.a_tenant(system)
    mine = client(await builders.a_key(system, tenant.tenant_id))

    problem = problem_of(await mine.get(path), 422, "invalid_request")

    assert problem["errors"][0]["path"] == path.partition("?")[2].partition("=")[0]
