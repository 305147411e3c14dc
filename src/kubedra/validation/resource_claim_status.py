"""Rules of a claim's status: reservations, the allocation, and what drivers report about allocated devices.

Upstream counterpart: ValidateResourceClaimStatusUpdate of pkg/apis/resource/validation. As in 1.36, tolerations and
consumed capacity of results are copies that nobody checks again.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.canonical import same_meaning
from kubedra.api.fields import FieldError
from kubedra.base import names
from kubedra.validation import formats, opaque
from kubedra.validation.conditions import validate_conditions
from kubedra.validation.context import Context
from kubedra.validation.device import validate_binding_conditions
from kubedra.validation.lists import check_list, check_set
from kubedra.validation.metadata import IMMUTABLE
from kubedra.validation.node_selector import validate_node_selector
from kubedra.validation.resource_claim import (
    RequestNames,
    request_names,
    validate_reference,
    validate_references,
)
from kubedra.validation.resource_slice import validate_skip_operations

Tree = dict[str, Any]
DeviceKey = tuple[str, str, str, str]

RESERVED_MAX = 256
RESULTS_MAX = 32
CONFIG_MAX = 64
CONDITIONS_MAX = 8
INTERFACE_MAX = 256
HARDWARE_ADDRESS_MAX = 128
ADDRESSES_MAX = 16
SOURCES = ("FromClaim", "FromClass")


def validate_status_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a new status against the stored claim."""
    status, before = new.get("status") or {}, old.get("status") or {}
    deleted = bool((new.get("metadata") or {}).get("deletionTimestamp"))
    allocation = status.get("allocation")
    errors = _validate_reservations(status, before, deleted)
    allocated = {device_key(result) for result in results(status)}
    errors.extend(
        check_set(
            status.get("devices"),
            None,
            lambda device, path: _validate_device(device, path, allocated),
            "status.devices",
            key=device_key,
            shown=_shown_key,
        )
    )
    if allocation is not None:
        if before.get("allocation") is not None:
            if not same_meaning(allocation, before["allocation"]):
                errors.append(fields.invalid("status.allocation", allocation, IMMUTABLE))
        else:
            known = request_names(new.get("spec") or {})
            errors.extend(_validate_allocation(allocation, "status.allocation", known))
    return errors


def device_key(device: Tree) -> DeviceKey:
    """Identify an allocated device: driver, pool, device and share."""
    return (
        device.get("driver") or "",
        device.get("pool") or "",
        device.get("device") or "",
        device.get("shareID") or "",
    )


def results(status: Tree) -> list[Tree]:
    """List the allocation results of a claim status."""
    return ((status.get("allocation") or {}).get("devices") or {}).get("results") or []


def _shown_key(device: Tree) -> Tree:
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), device_key(device), strict=True))


def _validate_reservations(status: Tree, before: Tree, deleted: bool) -> list[FieldError]:
    reserved = status.get("reservedFor") or []
    path = "status.reservedFor"
    errors = check_set(reserved, RESERVED_MAX, _validate_consumer, path, key=lambda consumer: consumer.get("uid") or "")
    if reserved and status.get("allocation") is None:
        errors.append(fields.forbidden(path, "may not be specified when `allocated` is not set"))
    elif reserved and deleted:
        known = before.get("reservedFor") or []
        if any(consumer not in known for consumer in reserved):
            text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            errors.append(fields.forbidden(path, text))
    return errors


def _validate_consumer(consumer: Tree, path: str) -> list[FieldError]:
    return [fields.required(f"{path}.{name}") for name in ("resource", "name", "uid") if not consumer.get(name)]


def _validate_allocation(allocation: Tree, path: str, known: RequestNames) -> list[FieldError]:
    devices, at = allocation.get("devices") or {}, f"{path}.devices"
    errors = check_list(
        devices.get("results"),
        RESULTS_MAX,
        lambda result, where: _validate_result(result, where, known),
        f"{at}.results",
    )
    errors.extend(
        check_list(
            devices.get("config"), CONFIG_MAX, lambda item, where: _validate_config(item, where, known), f"{at}.config"
        )
    )
    selector = allocation.get("nodeSelector")
    if selector is not None:
        errors.extend(validate_node_selector(selector, f"{path}.nodeSelector"))
    return errors


def _validate_result(result: Tree, path: str, known: RequestNames) -> list[FieldError]:
    errors = validate_reference(result.get("request") or "", f"{path}.request", known)
    errors.extend(_validate_identity(result, path))
    errors.extend(
        validate_binding_conditions(result.get("bindingConditions"), result.get("bindingFailureConditions"), path)
    )
    errors.extend(validate_skip_operations(result.get("skipNodeOperations"), f"{path}.skipNodeOperations"))
    return errors


def _validate_identity(device: Tree, path: str) -> list[FieldError]:
    errors = formats.driver(device.get("driver") or "", f"{path}.driver")
    errors.extend(formats.pool(device.get("pool") or "", f"{path}.pool"))
    errors.extend(formats.label(device.get("device") or "", f"{path}.device"))
    share = device.get("shareID")
    if share is not None:
        errors.extend(formats.share(share, f"{path}.shareID"))
    return errors


def _validate_config(config: Tree, path: str, known: RequestNames) -> list[FieldError]:
    errors: list[FieldError] = []
    source = config.get("source") or ""
    if not source:
        errors.append(fields.required(f"{path}.source"))
    elif source not in SOURCES:
        errors.append(fields.not_supported(f"{path}.source", source, SOURCES))
    errors.extend(validate_references(config.get("requests"), f"{path}.requests", known))
    errors.extend(opaque.validate_configuration(config, path))
    return errors


def _validate_device(device: Tree, path: str, allocated: set[DeviceKey]) -> list[FieldError]:
    errors = _validate_identity(device, path)
    if device_key(device) not in allocated:
        errors.append(fields.invalid(path, _shown_key(device), "must be an allocated device in the claim"))
    errors.extend(validate_conditions(device.get("conditions"), f"{path}.conditions", CONDITIONS_MAX))
    if device.get("data") is not None:
        errors.extend(opaque.validate_raw(device["data"], f"{path}.data"))
    network = device.get("networkData")
    if network is not None:
        errors.extend(_validate_network(network, f"{path}.networkData"))
    return errors


def _validate_network(network: Tree, path: str) -> list[FieldError]:
    errors = [
        fields.too_long(f"{path}.{name}", limit)
        for name, limit in (("interfaceName", INTERFACE_MAX), ("hardwareAddress", HARDWARE_ADDRESS_MAX))
        if len((network.get(name) or "").encode()) > limit
    ]

    def check(address: str, at: str) -> list[FieldError]:
        return [fields.invalid(at, address, fault) for fault in names.interface_address(address)]

    errors.extend(check_set(network.get("ips"), ADDRESSES_MAX, check, f"{path}.ips"))
    return errors
