"""What is connected to is what was checked."""

import socket

import pytest

from jobs.addresses import AddressPolicy
from workers.engine import address_guard
from workers.engine.address_guard import AddressRefused, GuardedResolver
from workers.engine.outcomes import FetchFailed

PUBLIC = AddressPolicy()
LOOPBACK = AddressPolicy.of(["127.0.0.0/8", "::1/128"])


class Answers:
    """A resolver whose answers are scripted, one list for each question."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, name, port):
        self.asked.append((name, port))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def addresses(policy, lookup, host="name.example"):
    results = await GuardedResolver(policy, lookup).resolve(host, 80)
    return [(result["host"], result["family"]) for result in results]


async def test_public_answers_are_handed_on_with_their_families():
    lookup = Answers(["8.8.8.8", "2606:4700::1111"])
    assert await addresses(PUBLIC, lookup) == [
        ("8.8.8.8", socket.AF_INET),
        ("2606:4700::1111", socket.AF_INET6),
    ]


@pytest.mark.parametrize("host", ["name.example", "name.example."])
async def test_a_name_is_asked_for_as_an_absolute_one(host):
    lookup = Answers(["8.8.8.8"])
    await addresses(PUBLIC, lookup, host)
    assert lookup.asked == [("name.example.", 80)]


@pytest.mark.parametrize(
    "answer",
    [
        ["127.0.0.1"],
        ["8.8.8.8", "127.0.0.1"],
        ["10.0.0.1", "8.8.8.8"],
        ["8.8.8.8", "::ffff:10.0.0.1"],
        ["64:ff9b::a9fe:a9fe"],
        ["not an address"],
    ],
)
async def test_one_bad_answer_refuses_all(answer):
    with pytest.raises(FetchFailed) as failure:
        await addresses(PUBLIC, Answers(answer))
    assert failure.value.reason == "blocked"


async def test_localhost_is_never_asked_for():
    lookup = Answers()
    assert await addresses(LOOPBACK, lookup, "localhost") == [
        ("127.0.0.1", socket.AF_INET),
        ("::1", socket.AF_INET6),
    ]
    only_v4 = AddressPolicy.of(["127.0.0.0/8"])
    assert await addresses(only_v4, lookup, "a.localhost") == [("127.0.0.1", socket.AF_INET)]
    with pytest.raises(FetchFailed):
        await addresses(PUBLIC, lookup, "localhost")
    assert lookup.asked == []


@pytest.mark.parametrize(
    ("answer", "retryable"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), False),
        (socket.gaierror(socket.EAI_AGAIN, "later"), True),
        (UnicodeError("label too long"), False),
        ([], False),
    ],
)
async def test_a_name_without_an_answer_is_a_dns_failure(answer, retryable):
    with pytest.raises(FetchFailed) as failure:
        await addresses(PUBLIC, Answers(answer))
    assert (failure.value.reason, failure.value.detail) == ("upstream_error", "dns")
    assert failure.value.retryable is retryable


async def test_the_systems_resolver_gives_plain_addresses():
    assert await address_guard.lookup_all("127.0.0.1", 80) == ["127.0.0.1"]


def endpoint(family, address):
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, 80))


@pytest.mark.parametrize(
    ("family", "address"),
    [
        (socket.AF_INET, "127.0.0.1"),
        (socket.AF_INET, "169.254.169.254"),
        (socket.AF_INET, "0.0.0.0"),
        (socket.AF_INET6, "::1"),
        (socket.AF_INET6, "::ffff:127.0.0.1"),
        (socket.AF_UNIX, "8.8.8.8"),
    ],
)
def test_no_socket_is_made_for_an_address_inside(family, address):
    with pytest.raises(AddressRefused):
        address_guard.socket_factory(PUBLIC)(endpoint(family, address))


def test_a_socket_is_made_for_a_permitted_address():
    with address_guard.socket_factory(PUBLIC)(endpoint(socket.AF_INET, "8.8.8.8")) as made:
        assert made.family == socket.AF_INET
