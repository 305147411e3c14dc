"""The environment of device selectors, and devices as its input.

A selector sees one variable, ``device``: driver, attributes and capacity by domain, whether several claims may share
it. Names without a domain stand under the driver's; where a device carries both spellings the qualified one wins
(upstream leaves that to Go's map order). All attributes are converted before anything runs: one that is malformed
fails every selector on that device, and the failure belongs to the device, not to the expression.

Upstream counterpart: k8s.io/dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kubedra.base.quantity import Quantity, QuantityError
from kubedra.base.semver import Semver, SemverError
from kubedra.cel import types
from kubedra.cel.environment import Environment, Library, build
from kubedra.cel.errors import EvaluationError
from kubedra.cel.library import lists, optionals
from kubedra.cel.library.versions import libraries, minor
from kubedra.cel.types import Type, map_of, struct
from kubedra.cel.values import DefaultMap, StructValue, Value

if TYPE_CHECKING:
    from kubedra.api.resource_v1 import Device

DEVICE: Final = struct("kubernetes.DRADevice")


class _Sized:
    """A declared type as the cost estimate sees it: its largest size and what lies below it."""

    __slots__ = ("element", "fields", "key", "named_elements", "size")

    def __init__(
        self,
        size: int,
        key: _Sized | None = None,
        element: _Sized | None = None,
        fields: Mapping[str, _Sized] | None = None,
        named_elements: bool = False,
    ) -> None:
        self.size = size
        self.key = key
        self.element = element
        self.fields = fields or {}
        # Attributes are known by name; capacities and domains selected by name are not, which upstream's
        # estimator leaves unbounded.
        self.named_elements = named_elements


_ENTRIES: Final = 32
_ID: Final = _Sized(32)
_DOMAIN: Final = _Sized(63)
_ATTRIBUTES: Final = _Sized(_ENTRIES, _ID, _Sized(64), named_elements=True)
_CAPACITIES: Final = _Sized(_ENTRIES, _ID, _Sized(0))
_SIZED_DEVICE: Final = _Sized(
    0,
    fields={
        "driver": _Sized(63),
        "attributes": _Sized(_ENTRIES, _DOMAIN, _ATTRIBUTES),
        "capacity": _Sized(_ENTRIES, _DOMAIN, _CAPACITIES),
        "allowMultipleAllocations": _Sized(1),
    },
)


def _sizes(path: tuple[str, ...]) -> int | None:
    """Largest size of what lies at ``device.…``, as the API's validation bounds it."""
    if not path or path[0] != "device":
        return None
    node: _Sized | None = _SIZED_DEVICE
    for step in path[1:]:
        assert node is not None
        if step in ("@items", "@values"):
            node = node.element
        elif step == "@keys":
            node = node.key
        elif node.named_elements:
            node = node.element
        else:
            node = node.fields.get(step)
        if node is None:
            return None
    assert node is not None
    return node.size


@lru_cache(maxsize=64)
def device_environment(version: str, stored: bool, consumable: bool, lists_on: bool) -> Environment:
    """The environment of one Kubernetes version for stored or new selectors under the two gates that matter."""
    number = minor(version)
    dynamic = (lists_on and number >= 36) or (stored and number >= 37)
    attribute = types.DYN if dynamic else types.ANY
    fields: dict[str, Type] = {
        "driver": types.STRING,
        "attributes": map_of(types.STRING, map_of(types.STRING, attribute)),
        "capacity": map_of(types.STRING, map_of(types.STRING, types.QUANTITY)),
    }
    if stored or consumable:
        fields["allowMultipleAllocations"] = types.BOOL
    extra: list[Library] = [optionals.BIND]
    if number == 36 and (stored or lists_on):
        extra.append(lists.BOUNDED_INCLUDES)
    elif number >= 37 and lists_on and not stored:
        extra.append(lists.INCLUDES)
    return build((*libraries(version, stored), *extra), {"device": DEVICE}, {DEVICE.name: fields}, _sizes)


def attribute_type(environment: Environment) -> Type:
    """The static type of an attribute's value: any, or dyn where lists are possible."""
    return environment.structs[DEVICE.name]["attributes"].params[1].params[1]


class DeviceInput:
    """A device as selectors see it; ``fault`` says why no selector can look at it."""

    __slots__ = ("attributes", "capacity", "driver", "fault", "frame", "multi")

    def __init__(
        self,
        driver: str,
        attributes: DefaultMap,
        capacity: DefaultMap,
        multi: bool = False,
        fault: EvaluationError | None = None,
    ) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.multi = multi
        self.fault = fault
        fields: dict[str, Any] = {
            "driver": driver,
            "attributes": attributes,
            "capacity": capacity,
            "allowMultipleAllocations": multi,
        }
        # In the order of device_environment's fields: the slots every selector reads.
        self.frame: list[Value] = [StructValue(DEVICE, fields), driver, attributes, capacity, multi]

    @classmethod
    def of(cls, driver: str, device: Device, *, lists_supported: bool = True) -> DeviceInput:
        """From an API object. Never raises: what cannot be converted becomes ``fault``."""
        attributes, capacity = DefaultMap(), DefaultMap()
        fault: EvaluationError | None = None
        qualified: set[tuple[str, str]] = set()
        for name, attribute in device.attributes.items():
            try:
                value = _attribute_value(attribute, lists_supported)
            except (SemverError, ValueError) as error:
                fault = fault or EvaluationError(f"attribute {name}: {error}")
                continue
            _put(attributes, qualified, name, driver, value)
        qualified.clear()
        for name, entry in device.capacity.items():
            try:
                amount: Value = Quantity.parse(entry.value)
            except QuantityError as error:
                fault = fault or EvaluationError(f"capacity {name}: {error}")
                continue
            _put(capacity, qualified, name, driver, amount)
        return cls(driver, attributes, capacity, bool(device.allow_multiple_allocations), fault)


def _put(maps: DefaultMap, qualified: set[tuple[str, str]], name: str, driver: str, value: Value) -> None:
    domain, slash, id_ = name.partition("/")
    if not slash:
        domain, id_ = driver, name
        if (domain, id_) in qualified:
            return
    else:
        qualified.add((domain, id_))
    inner = maps.get(domain)
    if inner is None:
        inner = maps[domain] = {}
    inner[id_] = value


def _attribute_value(attribute: Any, lists_supported: bool) -> Value:
    if lists_supported:
        if attribute.ints:
            return list(attribute.ints)
        if attribute.bools:
            return list(attribute.bools)
        if attribute.strings:
            return list(attribute.strings)
        if attribute.versions:
            return [_version(text) for text in attribute.versions]
    if attribute.int_ is not None:
        return attribute.int_
    if attribute.bool_ is not None:
        return attribute.bool_
    if attribute.string is not None:
        return attribute.string
    if attribute.version is not None:
        return _version(attribute.version)
    raise ValueError("unsupported attribute value")


def _version(text: str) -> Semver:
    try:
        return Semver.parse(text)
    except SemverError as error:
        raise ValueError(f"parse semantic version: {error}") from None


def device_input_from_tree(driver: str, tree: Mapping[str, Any], *, lists_supported: bool = True) -> DeviceInput:
    """From a plain JSON tree of a Device (cases, dumps)."""
    import msgspec

    from kubedra.api.resource_v1 import Device

    return DeviceInput.of(driver, msgspec.convert(dict(tree), Device, strict=False), lists_supported=lists_supported)
