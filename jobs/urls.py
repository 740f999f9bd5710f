"""URLs with one meaning: strict parsing, links, canonical forms and keys."""

import functools
import hashlib
import re

import ada_url
import msgspec
from publicsuffixlist import PublicSuffixList

from jobs import hosts
from jobs.addresses import AddressPolicy
from jobs.hosts import Host, UrlRefused, invalid

__all__ = [
    "Target",
    "UrlRefused",
    "canonical_url",
    "parse_target",
    "registrable_domain",
    "resolve_link",
    "url_key",
]

URL_LIMIT_BYTES = 2048

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY = re.compile(r"//([^/?#]*)")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\]")
_LEADING_OR_TRAILING = "".join(map(chr, range(0x21)))  # what WHATWG strips around an href
_LINE_BREAKS = {ord(char): None for char in "\t\n\r"}
# Root-relative hrefs that every parser keeps as they are: no dot segments, nothing to escape.
_PLAIN_HREF = re.compile(
    r"(?!//|[^?#]*(?:/\.|%2[Ee]))(/[A-Za-z0-9_~!$&()*+,;=:@%/.-]*)"
    r"(?:\?([A-Za-z0-9_~!$&()*+,;=:@%/?.-]*))?(?:#.*)?"
)

_SUFFIXES = PublicSuffixList()


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A checked absolute URL, rebuilt from its parts, without a fragment.

    `host` is lower-case ASCII, an IPv6 address without brackets; `port` is the effective one;
    `path` begins with a slash; `query` has no question mark.
    """

    url: str
    scheme: str
    host: str
    port: int
    path: str
    query: str

    @property
    def origin(self) -> str:
        """`scheme://host:port`, where the scheme's default port is left out (RFC 6454, 6.2)."""
        return self.url[: self.url.index("/", len(self.scheme) + 3)]


def parse_target(text: str, *, policy: AddressPolicy) -> Target:
    """A URL as a person or a program submits it; raises UrlRefused.

    What parsers read in different ways is refused, not repaired, and what the policy does not
    open is blocked. No name is looked up here.
    """
    _check_length(text)
    if _FORBIDDEN.search(text) or any(char.isspace() for char in text):
        raise invalid("A URL must not hold spaces, control characters or backslashes.")
    return _parse_absolute(text, policy)


def resolve_link(base: Target, href: str, *, policy: AddressPolicy) -> Target | None:
    """A link as a page or a Location header spells it; None for mailto:, javascript: and such.

    White space around it is dropped and the rest read as browsers do, but the host must be
    spelt as strictly as in `parse_target`. Raises UrlRefused. An empty href is the base itself.
    """
    plain = _PLAIN_HREF.fullmatch(href)
    if plain is not None:
        return _on_same_host(base, plain[1], plain[2] or "")
    href = href.strip(_LEADING_OR_TRAILING).translate(_LINE_BREAKS)
    scheme = _SCHEME.match(href)
    if scheme is not None:
        if scheme[1].lower() not in hosts.DEFAULT_PORTS:
            return None
        return _parse_absolute(href, policy)
    if href[:1] in ("/", "\\") and href[1:2] in ("/", "\\"):
        return _parse_absolute(f"{base.scheme}:{href}", policy)
    joined = _ada(href, base.url)
    return _on_same_host(base, joined.pathname, joined.search.removeprefix("?"))


def canonical_url(target: Target, *, query: str = "keep") -> str:
    """One spelling for the URLs that surely name one page; `query="strip"` drops the query.

    Tracking parameters and session ids are removed, parameters sorted by name and escapes
    written in one way. `www.` and a trailing slash stay: only content tells if they matter.
    """
    path = target.path
    if ";" in path:
        path = _SESSION_IN_PATH.sub("", path)
    kept = "" if query == "strip" or not target.query else _canonical_query(target.query)
    ending = f"?{kept}" if kept else ""
    return f"{target.origin}{_canonical_escapes(path)}{ending}"


def url_key(canonical: str) -> bytes:
    """16 bytes that stand for a canonical URL in sets and in unique keys."""
    return hashlib.blake2b(canonical.encode(), digest_size=16).digest()


@functools.lru_cache(maxsize=4096)
def registrable_domain(host: str) -> str:
    """The part that was registered (example.co.uk); addresses and suffixes are themselves."""
    if ":" in host or host.rpartition(".")[2].isdigit():
        return host
    return _SUFFIXES.privatesuffix(host) or host


def _check_length(text: str) -> None:
    # A string may hold lone surrogates, which no encoding has.
    if len(text.encode("utf-8", "replace")) > URL_LIMIT_BYTES:
        raise invalid("A URL is at most 2,048 bytes long.")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise invalid("The URL is not valid Unicode.")


def _parse_absolute(text: str, policy: AddressPolicy) -> Target:
    scheme_match = _SCHEME.match(text)
    if scheme_match is None:
        raise invalid("A URL begins with http:// or https://.")
    scheme = scheme_match[1].lower()
    if scheme not in hosts.DEFAULT_PORTS:
        raise hosts.blocked("Only http and https URLs can be fetched.")
    authority = _AUTHORITY.match(text, scheme_match.end())
    if authority is None:
        raise invalid("The scheme must be followed by // and a host.")
    host = hosts.parse_authority(authority[1], scheme)
    hosts.check(host, policy)
    parsed = _ada(text)
    _check_agreement(parsed, scheme, host)
    return _target(scheme, host, parsed.pathname, parsed.search.removeprefix("?"))


def _ada(text: str, base: str | None = None) -> ada_url.URL:
    try:
        return ada_url.URL(text, base=base)
    except (ValueError, UnicodeError):
        raise invalid("The URL cannot be parsed.") from None


def _check_agreement(parsed: ada_url.URL, scheme: str, host: Host) -> None:
    """Two parsers, one meaning: otherwise what was checked is not what would be fetched."""
    port = int(parsed.port or hosts.DEFAULT_PORTS[scheme])
    name = parsed.hostname.strip("[]").removesuffix(".")
    if (parsed.protocol, name, port) != (f"{scheme}:", host.name, host.port):
        raise invalid("The URL means different hosts to different programs.")


def _target(scheme: str, host: Host, path: str, query: str) -> Target:
    url = f"{scheme}://{host.authority(scheme)}{path}{'?' if query else ''}{query}"
    _check_length(url)
    return Target(url=url, scheme=scheme, host=host.name, port=host.port, path=path, query=query)


def _on_same_host(base: Target, path: str, query: str) -> Target:
    url = f"{base.origin}{path}{'?' if query else ''}{query}"
    if len(url) > URL_LIMIT_BYTES:
        raise invalid("A URL is at most 2,048 bytes long.")
    return Target(
        url=url, scheme=base.scheme, host=base.host, port=base.port, path=path, query=query
    )


_SESSION_IN_PATH = re.compile(r";(?:jsessionid|phpsessid|sessionid|sid)=[^/;]*", re.IGNORECASE)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_DROPPED_NAME = re.compile(
    r"utm_.*|mtm_.*|aspsessionid.*|gclid|gclsrc|dclid|gbraid|wbraid|srsltid|_ga|_gl|fbclid"
    r"|msclkid|mc_[ce]id|yclid|_openstat|igsh|igshid|twclid|ttclid|li_fat_id|mkt_tok|_hsenc|_hsmi"
    r"|vero_id|oly_anon_id|oly_enc_id|epik|ref_src|ref_url|jsessionid|phpsessid|session_?id"
    r"|cftoken|zenid|oscsid",
    re.IGNORECASE,
)
_SHORT_SESSION_NAMES = frozenset({"sid", "sess", "session"})
_SESSION_VALUE = re.compile(r"[A-Za-z0-9_-]{16,}")


def _canonical_query(query: str) -> str:
    kept = [part for part in map(_canonical_escapes, query.split("&")) if _is_kept(part)]
    # Sorted by name alone: the order of one name's values may matter.
    return "&".join(sorted(kept, key=_name))


def _name(part: str) -> str:
    return part.partition("=")[0]


def _is_kept(part: str) -> bool:
    name, _, value = part.partition("=")
    if not part or _DROPPED_NAME.fullmatch(name):
        return False
    return name.lower() not in _SHORT_SESSION_NAMES or not _SESSION_VALUE.fullmatch(value)


def _canonical_escapes(text: str) -> str:
    """Escapes of unreserved characters undone, the others in upper case (RFC 3986, 6.2.2)."""
    return _ESCAPE.sub(_canonical_escape, text) if "%" in text else text


def _canonical_escape(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    return char if char in _UNRESERVED else f"%{match[1].upper()}"
