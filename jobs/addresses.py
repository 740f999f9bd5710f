"""Which network addresses may be fetched: the public ones, and those a setting opens."""

import ipaddress
from collections.abc import Iterable

import msgspec

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# The IANA special-purpose registries (IPv4: RFC 6890), without the blocks that they call
# globally reachable, and with multicast and addresses that clouds answer themselves.
_DENIED_V4 = tuple(
    ipaddress.IPv4Network(cidr)
    for cidr in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared address space; Alibaba's metadata lives here
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's WireServer
        "169.254.0.0/16",  # link-local; metadata and credentials of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata is 192.0.0.192
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays, deprecated by RFC 7526
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)

# All global unicast space that IANA has given out. What is outside is denied: loopback,
# unique local, link-local, site-local, multicast, SRv6, discard-only, local NAT64,
# IPv4-compatible and SIIT addresses.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_DENIED_V6 = tuple(
    ipaddress.IPv6Network(cidr)
    for cidr in (
        "2001::/23",  # protocol assignments; Teredo, benchmarking, ORCHID
        "2001:db8::/32",
        "3fff::/20",
    )
)

# Prefixes whose addresses are judged by the IPv4 address they carry, and how many bits
# stand behind it. Compatible, SIIT and Teredo addresses are denied whatever they carry.
_CARRIERS = (
    (ipaddress.IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),  # NAT64, RFC 6052
    (ipaddress.IPv6Network("2002::/16"), 80),  # 6to4, RFC 3056
)


class AddressPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What may be connected to: public addresses, and `allow_networks` besides.

    `deny_networks` and `deny_names` (lower-case host names) close what would be open:
    the service's own addresses and names. They win over `allow_networks`.
    """

    allow_networks: tuple[Network, ...] = ()
    deny_networks: tuple[Network, ...] = ()
    deny_names: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        cidrs: Iterable[str],
        *,
        deny_cidrs: Iterable[str] = (),
        deny_names: Iterable[str] = (),
    ) -> "AddressPolicy":
        """Raises ValueError for text that is no network, or has host bits set."""
        return cls(
            allow_networks=tuple(ipaddress.ip_network(cidr) for cidr in cidrs),
            deny_networks=tuple(ipaddress.ip_network(cidr) for cidr in deny_cidrs),
            deny_names=frozenset(name.lower().rstrip(".") for name in deny_names),
        )

    def permits(self, address: str) -> bool:
        """Whether a connection may be made; False for text that is no address."""
        parsed = _parse(address)
        return parsed is not None and (self._opened(parsed) or self._is_public(parsed))

    def opens(self, address: str) -> bool:
        """Whether the address is inside `allow_networks`, where the port rule is lifted."""
        parsed = _parse(address)
        return parsed is not None and self._opened(parsed)

    def _opened(self, address: Address) -> bool:
        return _inside(address, self.allow_networks) and not _inside(address, self.deny_networks)

    def _is_public(self, address: Address) -> bool:
        return not (_inside(address, self.deny_networks) or _is_special(address))


def _parse(address: str) -> Address | None:
    """The address with an IPv4 address inside unwrapped; None for zones and nonsense."""
    if "%" in address:
        return None
    try:
        return _unwrap(ipaddress.ip_address(address))
    except ValueError:
        return None


def _unwrap(address: Address) -> Address:
    for network, bits_behind in _CARRIERS:
        if address in network:
            return ipaddress.IPv4Address((int(address) >> bits_behind) & 0xFFFFFFFF)
    return address


def _inside(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


def _is_special(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return _inside(address, _DENIED_V4)
    return address not in _GLOBAL_UNICAST or _inside(address, _DENIED_V6)
