"""Kubernetes 1.37, resource/v1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec import field as _field

from kubedra.api import core_v1, meta_v1


class AllocatedDeviceStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    conditions: tuple[meta_v1.Condition, ...] = ()
    data: Any = None
    device: str = ""
    driver: str = ""
    network_data: NetworkDeviceData | None = None
    pool: str = ""
    share_id: str = _field(default="", name="shareID")


class DeviceAllocationResult(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    config: tuple[DeviceAllocationConfiguration, ...] = ()
    results: tuple[DeviceRequestAllocationResult, ...] = ()


class AllocationResult(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    allocation_timestamp: str = ""
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: core_v1.NodeSelector | None = None


class CELDeviceSelector(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    expression: str = ""


class CapacityRequestPolicy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    default: str | None = None
    valid_range: CapacityRequestPolicyRange | None = None
    valid_values: tuple[str, ...] = ()


class CapacityRequestPolicyRange(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    max: str = ""
    min: str = ""
    step: str = ""


class CapacityRequirements(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    requests: dict[str, str] = {}


class Counter(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    value: str = ""


class CounterSet(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    counters: dict[str, Counter] = {}
    name: str = ""


class Device(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    all_nodes: bool | None = None
    allow_multiple_allocations: bool | None = None
    attributes: dict[str, DeviceAttribute] = {}
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    binds_to_node: bool | None = None
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    name: str = ""
    node_allocatable_resources: dict[str, NodeAllocatableResource] = {}
    node_name: str | None = None
    node_selector: core_v1.NodeSelector | None = None
    taints: tuple[DeviceTaint, ...] = ()


class DeviceAllocationConfiguration(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    opaque: OpaqueDeviceConfiguration | None = None
    requests: tuple[str, ...] = ()
    source: str = ""


class DeviceAttribute(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    bool_: bool | None = _field(default=None, name="bool")
    bools: tuple[bool, ...] = ()
    int_: int | None = _field(default=None, name="int")
    ints: tuple[int, ...] = ()
    string: str | None = None
    strings: tuple[str, ...] = ()
    version: str | None = None
    versions: tuple[str, ...] = ()


class DeviceCapacity(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    request_policy: CapacityRequestPolicy | None = None
    value: str = ""


class DeviceClaim(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    config: tuple[DeviceClaimConfiguration, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    requests: tuple[DeviceRequest, ...] = ()


class DeviceClaimConfiguration(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    opaque: OpaqueDeviceConfiguration | None = None
    requests: tuple[str, ...] = ()


class DeviceClassSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None
    selectors: tuple[DeviceSelector, ...] = ()


class DeviceClass(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceClassConfiguration(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceConstraint(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    distinct_attribute: str = ""
    match_attribute: str = ""
    requests: tuple[str, ...] = ()


class DeviceCounterConsumption(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    compatibility_groups: tuple[str, ...] = ()
    counter_set: str = ""
    counters: dict[str, Counter] = {}


class DeviceDerivedAttribute(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    expression: str = ""
    name: str = ""


class DeviceRequest(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()
    name: str = ""


class DeviceRequestAllocationResult(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    admin_access: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    consumed_capacity: dict[str, str] = {}
    device: str = ""
    driver: str = ""
    pool: str = ""
    request: str = ""
    share_id: str | None = _field(default=None, name="shareID")
    skip_node_operations: tuple[str, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()


class DeviceSelector(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    cel: CELDeviceSelector | None = None


class DeviceSubRequest(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    allocation_mode: str = ""
    capacity: CapacityRequirements | None = None
    count: int | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()
    device_class_name: str = ""
    name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()


class DeviceTaint(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    effect: str = ""
    key: str = ""
    time_added: str = ""
    value: str = ""


class DeviceTaintRuleSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRuleStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    conditions: tuple[meta_v1.Condition, ...] = ()


class DeviceTaintRule(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()


class DeviceTaintSelector(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    device: str | None = None
    driver: str | None = None
    pool: str | None = None


class DeviceToleration(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    effect: str = ""
    key: str = ""
    operator: str = ""
    toleration_seconds: int | None = None
    value: str = ""


class ExactDeviceRequest(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    admin_access: bool | None = None
    allocation_mode: str = ""
    capacity: CapacityRequirements | None = None
    count: int | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()


class NetworkDeviceData(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    hardware_address: str = ""
    interface_name: str = ""
    ips: tuple[str, ...] = ()


class NodeAllocatableMapping(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    capacity_key: str = ""
    capacity_multiplier: str = ""
    device_multiplier: str = ""


class NodeAllocatableOverhead(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    per_container: str = ""
    per_pod: str = ""


class NodeAllocatableResource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class OpaqueDeviceConfiguration(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    driver: str = ""
    parameters: Any = None


class ResourceClaimSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    devices: DeviceClaim = DeviceClaim()


class ResourceClaimStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    allocation: AllocationResult | None = None
    devices: tuple[AllocatedDeviceStatus, ...] = ()
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()


class ResourceClaim(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimConsumerReference(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    api_group: str = ""
    name: str = ""
    resource: str = ""
    uid: str = ""


class ResourceClaimTemplateSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class ResourcePool(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    generation: int = 0
    name: str = ""
    resource_slice_count: int = 0


class ResourceSliceSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    driver: str = ""
    node_name: str | None = None
    node_selector: core_v1.NodeSelector | None = None
    partition_type_attribute: str = ""
    per_device_node_selection: bool | None = None
    pool: ResourcePool = ResourcePool()
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()
