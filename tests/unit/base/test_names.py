"""Name formats: what is accepted and the sentence for what is not."""

from __future__ import annotations

import pytest

from kubedra.base import names

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize("value", ["a", "0", "a-b", "a" * 63])
def test_labels_accepted(value: str) -> None:
    assert names.dns_label(value) == []


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ("", [LABEL]),
        ("A", [LABEL]),
        ("-a", [LABEL]),
        ("a\n", [LABEL]),
        ("a.b", ["must not contain dots"]),
        ("a" * 64, ["must be no more than 63 characters"]),
    ],
)
def test_labels_refused(value: str, faults: list[str]) -> None:
    assert names.dns_label(value) == faults


def test_subdomain_length_names_the_unit_the_caller_chose() -> None:
    assert names.dns_subdomain("a" * 254) == ["must be no more than 253 characters"]
    assert names.dns_subdomain("a" * 254, unit="bytes") == ["must be no more than 253 bytes"]


@pytest.mark.parametrize("value", ["a", "example.com/a_b.C", "A", "1"])
def test_qualified_names_accepted(value: str) -> None:
    assert names.qualified_name(value) == []


def test_qualified_name_reports_prefix_and_name_apart() -> None:
    faults = names.qualified_name("/")
    assert faults[0] == "prefix part must be non-empty"
    assert faults[1] == "name part must be non-empty"
    assert faults[2].startswith("name part must consist of alphanumeric characters")
    assert "optional DNS subdomain prefix" in names.qualified_name("a/b/c")[0]


@pytest.mark.parametrize("value", ["", "a", "a" * 63, "A_b.c"])
def test_label_values_accepted(value: str) -> None:
    assert names.label_value(value) == []


@pytest.mark.parametrize("value", ["-", "a b", "a" * 64, "ü"])
def test_label_values_refused(value: str) -> None:
    assert names.label_value(value)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("192.0.2.5", "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"),
        ("192.0.2.005/24", 'must be in canonical form ("192.0.2.5/24")'),
        ("2001:DB8::1/64", 'must be in canonical form ("2001:db8::1/64")'),
        ("::ffff:1.2.3.4/96", 'must be in canonical form ("1.2.3.4/0")'),
        ("1.2.3.4/33", "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"),
    ],
)
def test_interface_addresses_refused(value: str, fault: str) -> None:
    assert names.interface_address(value) == [fault]


def test_interface_addresses_accepted() -> None:
    assert names.interface_address("192.0.2.5/24") == []
    assert names.interface_address("2001:db8::1/64") == []


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("x", "error validating uid: invalid UUID length: 1"),
        ("00000000-0000-4000-8000-00000000000g", "error validating uid: invalid UUID format"),
        (
            "00000000-0000-4000-8000-00000000000A",
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
            "with lowercase hexadecimal characters",
        ),
    ],
)
def test_uuids_refused(value: str, fault: str) -> None:
    assert names.uuid(value) == [fault]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("a" * 16, "must be no more than 15 characters"),
        ("1", "must contain at least one letter (a-z)"),
        ("a--b", "must not contain consecutive hyphens"),
        ("-a", "must not begin or end with a hyphen"),
    ],
)
def test_port_names_refused(value: str, fault: str) -> None:
    assert names.port_name(value) == [fault]


@pytest.mark.parametrize("value", ["..", "a b", "..a", "."])
def test_config_keys_refused(value: str) -> None:
    assert names.config_key(value)


def test_generated_name_prefix_may_end_in_a_dash() -> None:
    assert names.dns_subdomain(names.mask_trailing_dash("web-")) == []
    assert names.dns_subdomain(names.mask_trailing_dash("-")) != []
