"""The host and port of a URL: accepted in one spelling only, then judged by policy."""

import ipaddress
import re
import unicodedata

import ada_url
import idna
import msgspec

from jobs.addresses import AddressPolicy
from runtime.errors import Refusal

DEFAULT_PORTS = {"http": 80, "https": 443}
OPEN_PORTS = frozenset({80, 443, 8080, 8443})
HOST_LIMIT = 253
LOOPBACK = "127.0.0.1"

# Names that only mean something inside a network, whatever they resolve to.
_INSIDE_SUFFIXES = (
    ".internal",
    ".local",
    ".localdomain",
    ".svc",
    ".lan",
    ".intranet",
    ".corp",
    ".home",
    ".home.arpa",
)

_ADDRESS_V6 = re.compile(r"\[([0-9A-Fa-f:.]+)\]")
_PORT = re.compile(r"[0-9]{1,5}")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_HOST_SAFE = re.compile(r"[A-Za-z0-9._-]+")


class UrlRefused(Refusal):
    """A URL that is never fetched: `invalid_url` by its spelling, `blocked` by policy.

    The message never repeats the URL: it may hold credentials or control characters.
    """


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A checked host in lower case; an IPv6 address has no brackets here."""

    name: str
    port: int
    is_address: bool

    def authority(self, scheme: str) -> str:
        """As it stands in a URL: brackets for IPv6, and no port that is the default."""
        name = f"[{self.name}]" if ":" in self.name else self.name
        return name if self.port == DEFAULT_PORTS[scheme] else f"{name}:{self.port}"


def invalid(message: str) -> UrlRefused:
    return UrlRefused("invalid_url", message)


def blocked(message: str) -> UrlRefused:
    return UrlRefused("blocked", message)


def parse_authority(text: str, scheme: str) -> Host:
    """The part between `//` and the path; refuses every spelling that parsers read differently."""
    if "@" in text:
        raise invalid("A URL must not carry a user name or password.")
    if "%" in text:
        raise invalid("A host must not hold percent escapes or a zone id.")
    if not text:
        raise invalid("The URL has no host.")
    end = text.find("]") + 1 if text.startswith("[") else _end_of_name(text)
    name, colon, port = text[:end], text[end : end + 1], text[end + 1 :]
    if colon and colon != ":":
        raise invalid("An IPv6 address must be followed by a port or by nothing.")
    return _host(name, _port(port) if port else DEFAULT_PORTS[scheme])


def check(host: Host, policy: AddressPolicy) -> None:
    """Raises UrlRefused `blocked` for what the policy does not open, without any look-up."""
    if host.is_address:
        _check_address(host.name, policy)
    else:
        _check_name(host.name, policy)
    if host.port not in OPEN_PORTS and not _inside(host, policy):
        raise blocked("Only the ports 80, 443, 8080 and 8443 may be fetched.")


def is_loopback_name(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def _inside(host: Host, policy: AddressPolicy) -> bool:
    if host.is_address:
        return policy.opens(host.name)
    return is_loopback_name(host.name) and policy.opens(LOOPBACK)


def _check_address(address: str, policy: AddressPolicy) -> None:
    if not policy.permits(address):
        raise blocked("The address is private, reserved or otherwise not public.")
    if ":" in address and ipaddress.IPv6Address(address).ipv4_mapped:
        raise invalid("Write the IPv4 address itself, not its IPv6-mapped form.")


def _check_name(name: str, policy: AddressPolicy) -> None:
    if is_loopback_name(name):
        allowed = policy.opens(LOOPBACK)
    else:
        allowed = "." in name and not name.endswith(_INSIDE_SUFFIXES)
    if not allowed or name in policy.deny_names:
        raise blocked("The host name is not a public one.")


def _end_of_name(text: str) -> int:
    colons = text.count(":")
    if colons > 1:
        raise invalid("A host is followed by one port; an IPv6 address stands in brackets.")
    return text.find(":") if colons else len(text)


def _port(text: str) -> int:
    if not _PORT.fullmatch(text) or not 0 < int(text) < 65536:  # noqa: PLR2004 - the last port
        raise invalid("A port is a number from 1 to 65535.")
    return int(text)


def _host(text: str, port: int) -> Host:
    if text.startswith("["):
        return Host(name=_address_v6(text), port=port, is_address=True)
    name = (text if text.isascii() else _to_ascii(text)).lower()
    last = name.removesuffix(".").rpartition(".")[2]
    if _NUMERIC.fullmatch(last):
        _check_dotted_quad(name)
        return Host(name=name, port=port, is_address=True)
    name = name.removesuffix(".")
    _check_labels(name)
    return Host(name=name, port=port, is_address=False)


def _address_v6(text: str) -> str:
    match = _ADDRESS_V6.fullmatch(text)
    if match is None or ":" not in match[1]:
        raise invalid("The brackets hold no IPv6 address.")
    try:
        address = ipaddress.IPv6Address(match[1])
    except ValueError:
        raise invalid("The brackets hold no IPv6 address.") from None
    # 3.11 writes mapped addresses with hexadecimal groups, 3.13 with dots: ask ada for one form.
    return ada_url.URL(f"http://[{address}]/").hostname.strip("[]")


def _check_dotted_quad(name: str) -> None:
    try:
        ipaddress.IPv4Address(name)  # refuses leading zeros, which are octal to some parsers
    except ValueError:
        raise invalid("A host that ends in a number must be an IPv4 address a.b.c.d.") from None


def _check_labels(name: str) -> None:
    if len(name) > HOST_LIMIT:
        raise invalid("A host name is at most 253 characters long.")
    if not _HOST_SAFE.fullmatch(name):
        raise invalid("The host name holds a character that no host name has.")
    for label in name.split("."):
        if not _LABEL.fullmatch(label):
            raise invalid("Each part of a host name has 1 to 63 characters and no hyphen outside.")
        if label.startswith("xn--"):
            _check_punycode(label)


def _check_punycode(label: str) -> None:
    try:
        decoded = label[4:].encode().decode("punycode")
        again = "" if decoded.isascii() else ada_url.URL(f"http://{decoded}.example/").hostname
    except (UnicodeError, ValueError):
        again = ""
    if again != f"{label}.example":
        raise invalid("The host name holds invalid punycode.")


def _to_ascii(name: str) -> str:
    """IDNA 2008 with the UTS 46 mapping, of a name that is already spelt in its own letters."""
    try:
        # Circled digits, full-width letters, ideographic dots and soft hyphens are mapped to
        # something else here, and by some parsers only.
        if idna.uts46_remap(name) != unicodedata.normalize("NFC", name.lower()):
            raise invalid("The host name holds characters that stand for others.")
        return idna.encode(name, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise invalid("The host name is no valid internationalised name.") from None
