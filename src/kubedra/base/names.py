"""Name formats: what may be a label, a subdomain, a qualified name, and what to say when it is not.

Every check returns a list of sentences (empty: the value is fine), because callers put the field path and
the value in front of them. The sentences are those of upstream: people search for them, and clients compare
them. Nothing here knows about objects or fields.

Upstream counterpart: k8s.io/apimachinery/pkg/util/validation and pkg/api/validate/content. The two word the
length fault differently ("characters", "bytes"); the caller chooses with `unit`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

DNS_LABEL_MAX = 63
DNS_SUBDOMAIN_MAX = 253
LABEL_VALUE_MAX = 63
QUALIFIED_NAME_MAX = 63

_LABEL_FMT = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FMT = _LABEL_FMT + r"(\." + _LABEL_FMT + ")*"
_CASELESS_SUBDOMAIN_FMT = _SUBDOMAIN_FMT
_DNS1035_FMT = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED_FMT = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE_FMT = "(" + _QUALIFIED_FMT + ")?"
_C_IDENTIFIER_FMT = r"[A-Za-z_][A-Za-z0-9_]*"
_ENVIRONMENT_FMT = r"[ -<>-~]+"
_CONFIG_KEY_FMT = r"[-._a-zA-Z0-9]+"

_LABEL = re.compile(_LABEL_FMT)
_SUBDOMAIN = re.compile(_SUBDOMAIN_FMT)
_DNS1035 = re.compile(_DNS1035_FMT)
_QUALIFIED = re.compile(_QUALIFIED_FMT)
_LABEL_VALUE = re.compile(_LABEL_VALUE_FMT)
_C_IDENTIFIER = re.compile(_C_IDENTIFIER_FMT)
_ENVIRONMENT = re.compile(_ENVIRONMENT_FMT)
_CONFIG_KEY = re.compile(_CONFIG_KEY_FMT)
_PORT_NAME_CHARS = re.compile(r"[-a-z0-9]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_DOTTED_QUAD_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_CASELESS_SUBDOMAIN_TEXT = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_DNS1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_QUALIFIED_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_LABEL_VALUE_TEXT = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', " + (
    "and must start and end with an alphanumeric character"
)
_C_IDENTIFIER_TEXT = (
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'"
)
_ENVIRONMENT_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_CONFIG_KEY_TEXT = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"


def regex_fault(text: str, pattern: str, *examples: str) -> str:
    """Render a format fault the way upstream does: the rule, examples, then the expression."""
    if not examples:
        return f"{text} (regex used for validation is '{pattern}')"
    shown = ",  or ".join(f"'{example}'" for example in examples)
    return f"{text} (e.g. {shown}, regex used for validation is '{pattern}')"


def too_long(limit: int, unit: str = "characters") -> str:
    """Render the length fault; upstream says "characters" in some places and "bytes" in others."""
    return f"must be no more than {limit} {unit}"


def dns_label(value: str, *, unit: str = "characters") -> list[str]:
    """Check a DNS-1123 label (at most 63 bytes, no dots)."""
    faults: list[str] = []
    if len(value.encode()) > DNS_LABEL_MAX:
        faults.append(too_long(DNS_LABEL_MAX, unit))
    if not _LABEL.fullmatch(value):
        if _SUBDOMAIN.fullmatch(value):
            faults.append("must not contain dots")
        else:
            faults.append(regex_fault(_LABEL_TEXT, _LABEL_FMT, "my-name", "123-abc"))
    return faults


def dns_subdomain(value: str, *, unit: str = "characters") -> list[str]:
    """Check a DNS-1123 subdomain (at most 253 bytes)."""
    faults: list[str] = []
    if len(value.encode()) > DNS_SUBDOMAIN_MAX:
        faults.append(too_long(DNS_SUBDOMAIN_MAX, unit))
    if not _SUBDOMAIN.fullmatch(value):
        faults.append(regex_fault(_SUBDOMAIN_TEXT, _SUBDOMAIN_FMT, "example.com"))
    return faults


def caseless_dns_subdomain(value: str, *, unit: str = "characters") -> list[str]:
    """Check a DNS-1123 subdomain in which capital letters are still tolerated."""
    faults: list[str] = []
    if len(value.encode()) > DNS_SUBDOMAIN_MAX:
        faults.append(too_long(DNS_SUBDOMAIN_MAX, unit))
    if not _SUBDOMAIN.fullmatch(value.lower()):
        faults.append(regex_fault(_CASELESS_SUBDOMAIN_TEXT, _CASELESS_SUBDOMAIN_FMT, "Example.com"))
    return faults


def dns1035_label(value: str) -> list[str]:
    """Check a DNS-1035 label: like a DNS-1123 label, but it begins with a letter."""
    faults: list[str] = []
    if len(value.encode()) > DNS_LABEL_MAX:
        faults.append(too_long(DNS_LABEL_MAX))
    if not _DNS1035.fullmatch(value):
        faults.append(regex_fault(_DNS1035_TEXT, _DNS1035_FMT, "my-name", "abc-123"))
    return faults


def qualified_name(value: str, *, unit: str = "characters") -> list[str]:
    """Check `[<subdomain>/]<name>`, the form of label keys, taint keys, condition types and resource names."""
    faults: list[str] = []
    parts = value.split("/")
    if len(parts) == 1:
        name = parts[0]
    elif len(parts) == 2:
        prefix, name = parts
        if not prefix:
            faults.append("prefix part must be non-empty")
        else:
            faults.extend("prefix part " + fault for fault in dns_subdomain(prefix, unit=unit))
    else:
        text = regex_fault("a qualified name " + _QUALIFIED_TEXT, _QUALIFIED_FMT, "MyName", "my.name", "123-abc")
        return [f"{text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name.encode()) > QUALIFIED_NAME_MAX:
        faults.append("name part " + too_long(QUALIFIED_NAME_MAX, unit))
    if not _QUALIFIED.fullmatch(name):
        faults.append(
            "name part " + regex_fault(_QUALIFIED_TEXT, _QUALIFIED_FMT, "MyName", "my.name", "123-abc"),
        )
    return faults


def label_value(value: str, *, unit: str = "characters") -> list[str]:
    """Check the value of a label (may be empty, at most 63 bytes)."""
    faults: list[str] = []
    if len(value.encode()) > LABEL_VALUE_MAX:
        faults.append(too_long(LABEL_VALUE_MAX, unit))
    if not _LABEL_VALUE.fullmatch(value):
        faults.append(regex_fault(_LABEL_VALUE_TEXT, _LABEL_VALUE_FMT, "MyValue", "my_value", "12345"))
    return faults


def c_identifier(value: str) -> list[str]:
    """Check a C identifier."""
    if _C_IDENTIFIER.fullmatch(value):
        return []
    return [regex_fault(_C_IDENTIFIER_TEXT, _C_IDENTIFIER_FMT, "my_name", "MY_NAME", "MyName")]


def environment_name(value: str) -> list[str]:
    """Check the name of an environment variable (any printable ASCII but '=')."""
    if _ENVIRONMENT.fullmatch(value):
        return []
    return [regex_fault(_ENVIRONMENT_TEXT, "^" + _ENVIRONMENT_FMT + "$", "my.env-name", "MY_ENV.NAME", "MyEnvName1")]


def config_key(value: str) -> list[str]:
    """Check a key of ConfigMap or Secret data: it must be usable as a file name."""
    faults: list[str] = []
    if len(value.encode()) > DNS_SUBDOMAIN_MAX:
        faults.append(too_long(DNS_SUBDOMAIN_MAX))
    if not _CONFIG_KEY.fullmatch(value):
        faults.append(regex_fault(_CONFIG_KEY_TEXT, _CONFIG_KEY_FMT, "key.name", "KEY_NAME", "key-name"))
    if value == ".":
        faults.append("must not be '.'")
    elif value == "..":
        faults.append("must not be '..'")
    elif value.startswith(".."):
        faults.append("must not start with '..'")
    return faults


def port_name(value: str) -> list[str]:
    """Check the name of a container port (IANA service name)."""
    faults: list[str] = []
    if len(value) > 15:
        faults.append(too_long(15))
    if not _PORT_NAME_CHARS.fullmatch(value):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= char <= "z" for char in value):
        faults.append("must contain at least one letter (a-z)")
    if "--" in value:
        faults.append("must not contain consecutive hyphens")
    if value and (value[0] == "-" or value[-1] == "-"):
        faults.append("must not begin or end with a hyphen")
    return faults


def port_number(value: int) -> list[str]:
    """Check a TCP or UDP port number."""
    return [] if 1 <= value <= 65535 else ["must be between 1 and 65535, inclusive"]


def uuid(value: str) -> list[str]:
    """Check a UUID in canonical form: 36 characters, lower case hexadecimal digits."""
    size = len(value.encode())
    # The parser also takes the URN, braced and bare spellings; those are then refused for not being canonical.
    if size not in (36, 45, 38, 32):
        return [f"error validating uid: invalid UUID length: {size}"]
    if size == 36 and not _UUID.fullmatch(value):
        return ["error validating uid: invalid UUID format"]
    if size != 36 or value != value.lower():
        return [
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
            "with lowercase hexadecimal characters"
        ]
    return []


def interface_address(value: str) -> list[str]:
    """Check an address of an interface in CIDR form, which must be spelled canonically."""
    wrong = ["must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"]
    address, slash, bits = value.partition("/")
    if not slash or not bits.isdigit() or not bits.isascii():
        return wrong
    try:
        parsed = ipaddress.ip_address(_DOTTED_QUAD_ZEROS.sub("", address) if ":" not in address else address)
    except ValueError:
        return wrong
    size = int(bits)
    if size > parsed.max_prefixlen:
        return wrong
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    canonical = f"{mapped}/{size - 96}" if mapped is not None and size >= 96 else f"{parsed}/{size}"
    return [] if canonical == value else [f'must be in canonical form ("{canonical}")']


def cidr(value: str) -> list[str]:
    """Check a network in CIDR form."""
    wrong = ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
    address, slash, bits = value.partition("/")
    if not slash or not bits.isdigit() or not bits.isascii():
        return wrong
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return wrong
    return [] if int(bits) <= parsed.max_prefixlen else wrong


def ip_address(value: str) -> list[str]:
    """Check an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return []


def mask_trailing_dash(value: str) -> str:
    """Make a generateName prefix checkable: its trailing dash will be followed by random letters."""
    if len(value) > 1 and value.endswith("-"):
        return value[:-2] + "a"
    return value


def joined(faults: Iterable[str]) -> str:
    """Join sentences for callers that show only one."""
    return ", ".join(faults)
