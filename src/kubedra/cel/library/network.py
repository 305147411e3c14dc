"""``ip``, ``cidr`` and ``url`` values.

Upstream counterpart: k8s.io/apiserver/pkg/cel/library/{ip,cidr,urls}.go; Go's net/netip and net/url decide what parses.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import parse_qsl, quote

from kubedra.cel.environment import Function, Library, Overload
from kubedra.cel.errors import EvaluationError
from kubedra.cel.types import BOOL, CIDR, INT, IP, STRING, URL, list_of, map_of
from kubedra.cel.values import Cidr, Url, Value

Address = IPv4Address | IPv6Address


def parse_ip(text: str) -> Address:
    """``ip(text)``."""
    if "%" in text:
        raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
    try:
        address = ip_address(text)
    except (ValueError, AddressValueError):
        raise EvaluationError(
            f'IP Address "{text}" parse error during conversion from string: ParseAddr("{text}"): unable to parse IP'
        ) from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


def is_ip(text: str) -> bool:
    """``isIP(text)``."""
    try:
        parse_ip(text)
    except EvaluationError:
        return False
    return True


def is_canonical(text: str) -> bool:
    """``ip.isCanonical(text)``."""
    return str(parse_ip(text)) == text


_PREFIX: Final = re.compile(r"0|[1-9][0-9]{0,2}")


def parse_cidr(text: str) -> Cidr:
    """``cidr(text)``."""
    address_text, slash, length_text = text.rpartition("/")
    try:
        if not slash or not _PREFIX.fullmatch(length_text) or "%" in address_text:
            raise ValueError(text)
        address = ip_address(address_text)
        if int(length_text) > address.max_prefixlen:
            raise ValueError(text)
    except ValueError:
        raise EvaluationError(
            "network address parse error during conversion from string: network address parse error during "
            f'conversion from string: netip.ParsePrefix("{text}"): unable to parse'
        ) from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(
            "network address parse error during conversion from string: IPv4-mapped IPv6 address "
            f'"{text}" is not allowed'
        )
    return Cidr(address, int(length_text))


def is_cidr(text: str) -> bool:
    """``isCIDR(text)``."""
    try:
        parse_cidr(text)
    except EvaluationError:
        return False
    return True


def contains_ip(cidr: Cidr, address: Value) -> bool:
    """``cidr.containsIP(address)``."""
    if address.__class__ is str:
        address = parse_ip(address)
    return address.version == cidr.address.version and address in cidr.network


def contains_cidr(cidr: Cidr, other: Value) -> bool:
    """``cidr.containsCIDR(other)``."""
    if other.__class__ is str:
        other = parse_cidr(other)
    if other.address.version != cidr.address.version or cidr.length > other.length:
        return False
    # Upstream compares the other's own address, cut to this prefix, with this network.
    return bool(cidr.network == ip_network(f"{other.address}/{cidr.length}", strict=False))


def _masked(cidr: Cidr) -> Cidr:
    return Cidr(cidr.network.network_address, cidr.length)


def _is_global(address: Address) -> bool:
    if address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local:
        return False
    return not (isinstance(address, IPv4Address) and str(address) == "255.255.255.255")


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return str(address).startswith("224.0.0.")
    packed = address.packed
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PORT: Final = re.compile(r":[0-9]*")
_HOST: Final = re.compile(r"[A-Za-z0-9\-._~%!$&'()*+,;=:\[\]<>\"\x80-\U0010ffff]*")


def parse_url(text: str) -> Url:
    """``url(text)``: an absolute URL or an absolute path."""
    reason = _url_fault(text)
    if reason:
        raise EvaluationError(f'URL parse error during conversion from string: parse "{text}": {reason}')
    rest, _, _ = text.partition("#")
    scheme = ""
    match = _SCHEME.match(rest)
    if match and not rest.startswith("/"):
        scheme = match[1].lower()
        rest = rest[match.end() :]
    path, _, query_text = rest.partition("?")
    host = ""
    if path.startswith("//") and scheme:
        authority, slash, tail = path[2:].partition("/")
        host = authority.rpartition("@")[2]
        path = slash + tail
    elif not path.startswith("/"):
        path = ""
    name, port = _split_port(host)
    query: dict[str, list[str]] = {}
    for key, value in parse_qsl(query_text, keep_blank_values=True, max_num_fields=10_000):
        query.setdefault(key, []).append(value)
    return Url(text, scheme, host, name, port, quote(path, safe="/%!$&'()*+,;=:@-._~[]"), query)


def _url_fault(text: str) -> str:
    if any(character < " " or character == "\x7f" for character in text):
        return "net/url: invalid control character in URL"
    if not text:
        return "empty url"
    if text == "*":
        return ""
    match = _SCHEME.match(text)
    rest = text[match.end() :] if match else text
    if match is None:
        if not text.startswith("/"):
            return "missing protocol scheme" if text.startswith(":") else "invalid URI for request"
    elif not rest.startswith("/"):
        # "mailto:x" is opaque and absolute.
        return "" if rest else "invalid URI for request"
    path = rest.partition("?")[0]
    if match is not None and path.startswith("//"):
        authority, slash, tail = path[2:].partition("/")
        fault = _authority_fault(authority)
        if fault:
            return fault
        path = slash + tail
    bad = _BAD_ESCAPE.search(path)
    if bad:
        return f'invalid URL escape "{path[bad.start() : bad.start() + 3]}"'
    return ""


def _authority_fault(authority: str) -> str:
    host = authority.rpartition("@")[2]
    if host.startswith("["):
        closing = host.rfind("]")
        if closing < 0:
            return "missing ']' in host"
        if not _PORT.fullmatch(host[closing + 1 :] or ":"):
            return f'invalid port "{host[closing + 1 :]}" after host'
    elif ":" in host:
        colon = host.rfind(":")
        if not _PORT.fullmatch(host[colon:]):
            return f'invalid port "{host[colon:]}" after host'
        if ":" in host[:colon]:
            return f'invalid port "{host[host.index(":") :]}" after host'
    if not _HOST.fullmatch(host):
        return "invalid character in host name"
    return ""


def _split_port(host: str) -> tuple[str, str]:
    if host.startswith("["):
        name, _, rest = host[1:].rpartition("]")
        return name, rest.removeprefix(":")
    name, colon, port = host.rpartition(":")
    return (name, port) if colon else (host, "")


def is_url(text: str) -> bool:
    """``isURL(text)``."""
    return not _url_fault(text)


def _ip_member(name: str, id_: str, attribute: str) -> Function:
    return Function(name, (Overload(id_, (IP,), BOOL, True, lambda address: bool(getattr(address, attribute))),))


ADDRESSES: Final = Library(
    functions=(
        Function("ip", (Overload("string_to_ip", (STRING,), IP, False, parse_ip),)),
        Function("isIP", (Overload("is_ip", (STRING,), BOOL, False, is_ip),)),
        Function("ip.isCanonical", (Overload("ip_is_canonical", (STRING,), BOOL, False, is_canonical),)),
        Function("family", (Overload("ip_family", (IP,), INT, True, lambda address: address.version),)),
        _ip_member("isUnspecified", "ip_is_unspecified", "is_unspecified"),
        _ip_member("isLoopback", "ip_is_loopback", "is_loopback"),
        Function(
            "isLinkLocalMulticast",
            (Overload("ip_is_link_local_multicast", (IP,), BOOL, True, _is_link_local_multicast),),
        ),
        _ip_member("isLinkLocalUnicast", "ip_is_link_local_unicast", "is_link_local"),
        Function("isGlobalUnicast", (Overload("ip_is_global_unicast", (IP,), BOOL, True, _is_global),)),
        Function("string", (Overload("ip_to_string", (IP,), STRING),)),
    ),
    types={"net.IP": IP},
)
NETWORKS: Final = Library(
    functions=(
        Function("cidr", (Overload("string_to_cidr", (STRING,), CIDR, False, parse_cidr),)),
        Function("isCIDR", (Overload("is_cidr", (STRING,), BOOL, False, is_cidr),)),
        Function(
            "containsIP",
            (
                Overload("cidr_contains_ip_string", (CIDR, STRING), BOOL, True, contains_ip),
                Overload("cidr_contains_ip_ip", (CIDR, IP), BOOL, True, contains_ip),
            ),
        ),
        Function(
            "containsCIDR",
            (
                Overload("cidr_contains_cidr_string", (CIDR, STRING), BOOL, True, contains_cidr),
                Overload("cidr_contains_cidr", (CIDR, CIDR), BOOL, True, contains_cidr),
            ),
        ),
        Function("ip", (Overload("cidr_ip", (CIDR,), IP, True, lambda cidr: cidr.address),)),
        Function("prefixLength", (Overload("cidr_prefix_length", (CIDR,), INT, True, lambda cidr: cidr.length),)),
        Function("masked", (Overload("cidr_masked", (CIDR,), CIDR, True, _masked),)),
        Function("string", (Overload("cidr_to_string", (CIDR,), STRING),)),
    ),
    types={"net.CIDR": CIDR},
)


def _url_part(name: str, id_: str, attribute: str) -> Function:
    return Function(name, (Overload(id_, (URL,), STRING, True, lambda url: getattr(url, attribute)),))


URLS: Final = Library(
    functions=(
        Function("url", (Overload("string_to_url", (STRING,), URL, False, parse_url),)),
        Function("isURL", (Overload("is_url_string", (STRING,), BOOL, False, is_url),)),
        _url_part("getScheme", "url_get_scheme", "scheme"),
        _url_part("getHost", "url_get_host", "host"),
        _url_part("getHostname", "url_get_hostname", "hostname"),
        _url_part("getPort", "url_get_port", "port"),
        _url_part("getEscapedPath", "url_get_escaped_path", "escaped_path"),
        Function(
            "getQuery",
            (Overload("url_get_query", (URL,), map_of(STRING, list_of(STRING)), True, lambda url: url.query),),
        ),
    )
)
