"""Names and addresses checked at the moment of connecting, when nothing can change."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult
from typing_extensions import override

from jobs import hosts
from jobs.addresses import AddressPolicy
from workers.engine.outcomes import FetchFailed

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
"""Every address of a name, for a port; raises OSError where there is none."""

LOOPBACK_ADDRESSES = (hosts.LOOPBACK, "::1")


class AddressRefused(OSError):
    """A connection that was stopped before its socket was made.

    An OSError, because only that passes through the client's race of addresses.
    """


class GuardedResolver(AbstractResolver):
    """Looks a name up once and hands on what was checked; one bad answer refuses all."""

    def __init__(self, policy: AddressPolicy, lookup: Lookup | None = None) -> None:
        self._policy = policy
        self._lookup = lookup or lookup_all

    @override
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._addresses(host, port)
        if not all(self._policy.permits(address) for address in addresses):
            raise FetchFailed("blocked", message="The host name leads to an address inside.")
        return [_result(host, port, address) for address in addresses]

    @override
    async def close(self) -> None:
        """Nothing is held open."""

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        if hosts.is_loopback_name(host):  # RFC 6761, 6.3: never asked of a server
            opened = [address for address in LOOPBACK_ADDRESSES if self._policy.opens(address)]
            return opened or [hosts.LOOPBACK]
        try:
            # The dot at the end keeps the resolver from trying its search domains.
            addresses = await self._lookup(f"{host.removesuffix('.')}.", port)
        except (OSError, UnicodeError) as error:
            raise _no_answer(error) from error
        if not addresses:
            raise _no_answer()
        return addresses


async def lookup_all(name: str, port: int) -> Sequence[str]:
    """Every IPv4 and IPv6 address that the system's resolver gives, once each."""
    answers = await asyncio.get_running_loop().getaddrinfo(
        name, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
    )
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def socket_factory(policy: AddressPolicy) -> Callable[[tuple[Any, ...]], socket.socket]:
    """A factory for the connector that sees the address really used, literals too."""

    def make_socket(address: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, endpoint = address
        if family not in (socket.AF_INET, socket.AF_INET6) or not policy.permits(endpoint[0]):
            raise AddressRefused("The address is not one that may be connected to.")
        return socket.socket(family, kind, protocol)

    return make_socket


def _result(host: str, port: int, address: str) -> ResolveResult:
    is_v4 = ipaddress.ip_address(address).version == 4  # noqa: PLR2004 - the IP version
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET if is_v4 else socket.AF_INET6,
        proto=socket.IPPROTO_TCP,
        flags=socket.AI_NUMERICHOST,
    )


def _no_answer(error: Exception | None = None) -> FetchFailed:
    """A name that does not exist stays so; a resolver that does not answer may later."""
    return FetchFailed(
        "upstream_error",
        "dns",
        message="The host name could not be resolved.",
        retryable=isinstance(error, OSError) and error.errno == socket.EAI_AGAIN,
    )
