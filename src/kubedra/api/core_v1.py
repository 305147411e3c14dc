"""Kubernetes 1.37, core/v1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec import field as _field

from kubedra.api import meta_v1


class PodSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    active_deadline_seconds: int | None = None
    affinity: Affinity | None = None
    automount_service_account_token: bool | None = None
    containers: tuple[Container, ...] = ()
    dns_config: PodDNSConfig | None = None
    dns_policy: str = ""
    enable_service_links: bool | None = None
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    eviction_responders: tuple[EvictionResponder, ...] = ()
    host_aliases: tuple[HostAlias, ...] = ()
    host_ipc: bool | None = _field(default=None, name="hostIPC")
    host_network: bool | None = None
    host_pid: bool | None = _field(default=None, name="hostPID")
    host_users: bool | None = None
    hostname: str = ""
    hostname_override: str = ""
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = {}
    os: PodOS | None = None
    overhead: dict[str, str] = {}
    preemption_policy: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    restart_policy: str = ""
    runtime_class_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    security_context: PodSecurityContext | None = None
    service_account: str = ""
    service_account_name: str = ""
    set_hostname_as_fqdn: bool | None = _field(default=None, name="setHostnameAsFQDN")
    share_process_namespace: bool | None = None
    subdomain: str = ""
    termination_grace_period_seconds: int | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()


class PodTemplateSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: PodSpec = PodSpec()


class Affinity(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class AppArmorProfile(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    localhost_profile: str = ""
    type: str = ""


class AttachedVolume(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    device_path: str = ""
    name: str = ""


class ObjectReference(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    api_version: str = ""
    field_path: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class Binding(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    target: ObjectReference = ObjectReference()


class Capabilities(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class ClusterTrustBundleProjection(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    label_selector: meta_v1.LabelSelector | None = None
    name: str = ""
    optional: bool | None = None
    path: str = ""
    signer_name: str = ""
    user: int | None = None


class ConfigMap(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    binary_data: dict[str, str] = {}
    data: dict[str, str] = {}
    immutable: bool | None = None
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()


class ConfigMapEnvSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    optional: bool | None = None


class ConfigMapKeySelector(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    key: str = ""
    name: str = ""
    optional: bool | None = None


class ConfigMapNodeConfigSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    kubelet_config_key: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class ConfigMapProjection(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    items: tuple[KeyToPath, ...] = ()
    name: str = ""
    optional: bool | None = None


class ConfigMapVolumeSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    default_mode: int | None = None
    default_user: int | None = None
    items: tuple[KeyToPath, ...] = ()
    name: str = ""
    optional: bool | None = None


class Container(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    image: str = ""
    image_pull_policy: str = ""
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    name: str = ""
    ports: tuple[ContainerPort, ...] = ()
    readiness_probe: Probe | None = None
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    tty: bool | None = None
    volume_devices: tuple[VolumeDevice, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    working_dir: str = ""


class ContainerExtendedResourceRequest(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    container_name: str = ""
    request_name: str = ""
    resource_name: str = ""


class ContainerImage(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    names: tuple[str, ...] = ()
    size_bytes: int | None = None


class ContainerPort(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    container_port: int = 0
    host_ip: str = _field(default="", name="hostIP")
    host_port: int | None = None
    name: str = ""
    protocol: str = ""


class ContainerResizePolicy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    resource_name: str = ""
    restart_policy: str = ""


class ContainerRestartRule(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    action: str = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class ContainerRestartRuleOnExitCodes(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    operator: str = ""
    values: tuple[int, ...] = ()


class ContainerState(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class ContainerStateRunning(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    started_at: str = ""


class ContainerStateTerminated(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    container_id: str = _field(default="", name="containerID")
    exit_code: int = 0
    finished_at: str = ""
    message: str = ""
    reason: str = ""
    signal: int | None = None
    started_at: str = ""


class ContainerStateWaiting(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    message: str = ""
    reason: str = ""


class ContainerStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    allocated_resources: dict[str, str] = {}
    allocated_resources_status: tuple[ResourceStatus, ...] = ()
    container_id: str = _field(default="", name="containerID")
    image: str = ""
    image_id: str = _field(default="", name="imageID")
    last_state: ContainerState | None = None
    name: str = ""
    ready: bool = False
    resources: ResourceRequirements | None = None
    restart_count: int = 0
    started: bool | None = None
    state: ContainerState | None = None
    stop_signal: str = ""
    user: ContainerUser | None = None
    volume_mounts: tuple[VolumeMountStatus, ...] = ()


class ContainerUser(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    linux: LinuxContainerUser | None = None


class DaemonEndpoint(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    port: int = _field(default=0, name="Port")


class DownwardAPIProjection(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    items: tuple[DownwardAPIVolumeFile, ...] = ()


class DownwardAPIVolumeFile(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    field_ref: ObjectFieldSelector | None = None
    mode: int | None = None
    path: str = ""
    resource_field_ref: ResourceFieldSelector | None = None
    user: int | None = None


class DownwardAPIVolumeSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    default_mode: int | None = None
    default_user: int | None = None
    items: tuple[DownwardAPIVolumeFile, ...] = ()


class EmptyDirVolumeSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    medium: str = ""
    mode: int | None = None
    size_limit: str = ""


class EnvFromSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    config_map_ref: ConfigMapEnvSource | None = None
    prefix: str = ""
    secret_ref: SecretEnvSource | None = None


class EnvVar(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    name: str = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class EnvVarSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    config_map_key_ref: ConfigMapKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    file_key_ref: FileKeySelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    secret_key_ref: SecretKeySelector | None = None


class EphemeralContainer(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    image: str = ""
    image_pull_policy: str = ""
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    name: str = ""
    ports: tuple[ContainerPort, ...] = ()
    readiness_probe: Probe | None = None
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    resources: ResourceRequirements | None = None
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    target_container_name: str = ""
    termination_message_path: str = ""
    termination_message_policy: str = ""
    tty: bool | None = None
    volume_devices: tuple[VolumeDevice, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    working_dir: str = ""


class EphemeralVolumeSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    action: str = ""
    api_version: str = ""
    count: int | None = None
    event_time: str = ""
    first_timestamp: str = ""
    involved_object: ObjectReference = ObjectReference()
    kind: str = ""
    last_timestamp: str = ""
    message: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    reason: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""
    series: EventSeries | None = None
    source: EventSource | None = None
    type: str = ""


class EventSeries(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    count: int | None = None
    last_observed_time: str = ""


class EventSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    component: str = ""
    host: str = ""


class EvictionResponder(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    priority: int = 0


class ExecAction(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    command: tuple[str, ...] = ()


class FileKeySelector(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    key: str = ""
    optional: bool | None = None
    path: str = ""
    volume_name: str = ""


class GRPCAction(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    mode: str = ""
    port: int = 0
    service: str = ""


class HTTPGetAction(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    host: str = ""
    http_headers: tuple[HTTPHeader, ...] = ()
    path: str = ""
    port: int | str | None = None
    protocol: str = ""
    scheme: str = ""


class HTTPHeader(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    value: str = ""


class HostAlias(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    hostnames: tuple[str, ...] = ()
    ip: str = ""


class HostIP(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    ip: str = ""


class HostPathVolumeSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    path: str = ""
    type: str = ""


class ImageVolumeStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    image_ref: str = ""


class KeyToPath(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    key: str = ""
    mode: int | None = None
    path: str = ""
    user: int | None = None


class Lifecycle(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str = ""


class LifecycleHandler(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TCPSocketAction | None = None


class LinuxContainerUser(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    gid: int = 0
    supplemental_groups: tuple[int, ...] = ()
    uid: int = 0


class LocalObjectReference(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""


class ModifyVolumeStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    status: str = ""
    target_volume_attributes_class_name: str = ""


class NamespaceSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    conditions: tuple[NamespaceCondition, ...] = ()
    phase: str = ""


class Namespace(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class NamespaceCondition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    last_transition_time: str = ""
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class NodeSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    config_source: NodeConfigSource | None = None
    external_id: str = _field(default="", name="externalID")
    pod_cidr: str = _field(default="", name="podCIDR")
    pod_cidrs: tuple[str, ...] = _field(default=(), name="podCIDRs")
    pod_preemption_policy: NodePodPreemptionPolicy | None = None
    provider_id: str = _field(default="", name="providerID")
    taints: tuple[Taint, ...] = ()
    unschedulable: bool | None = None


class NodeStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    addresses: tuple[NodeAddress, ...] = ()
    allocatable: dict[str, str] = {}
    capacity: dict[str, str] = {}
    conditions: tuple[NodeCondition, ...] = ()
    config: NodeConfigStatus | None = None
    daemon_endpoints: NodeDaemonEndpoints | None = None
    declared_features: tuple[str, ...] = ()
    features: NodeFeatures | None = None
    images: tuple[ContainerImage, ...] = ()
    node_info: NodeSystemInfo | None = None
    phase: str = ""
    runtime_handlers: tuple[NodeRuntimeHandler, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    volumes_in_use: tuple[str, ...] = ()


class Node(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NodeAddress(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    address: str = ""
    type: str = ""


class NodeAffinity(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class NodeAllocatableMappedResources(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    quantity: str = ""


class NodeAllocatableOverheadResources(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    per_container: str = ""
    per_pod: str = ""


class NodeAllocatableResourceClaimStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    containers: tuple[str, ...] = ()
    mapping: tuple[NodeAllocatableMappedResources, ...] = ()
    overhead: tuple[NodeAllocatableOverheadResources, ...] = ()
    resource_claim_name: str = ""


class NodeCondition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    last_heartbeat_time: str = ""
    last_transition_time: str = ""
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class NodeConfigSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    config_map: ConfigMapNodeConfigSource | None = None


class NodeConfigStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    active: NodeConfigSource | None = None
    assigned: NodeConfigSource | None = None
    error: str = ""
    last_known_good: NodeConfigSource | None = None


class NodeDaemonEndpoints(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    kubelet_endpoint: DaemonEndpoint | None = None


class NodeFeatures(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    supplemental_groups_policy: bool | None = None


class NodePodPreemptionPolicy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    disable_resize_preemption: tuple[str, ...] = ()


class NodeRuntimeHandler(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    features: NodeRuntimeHandlerFeatures | None = None
    name: str = ""


class NodeRuntimeHandlerFeatures(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class NodeSelector(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeSelectorRequirement(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSwapStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    capacity: int | None = None


class NodeSystemInfo(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    architecture: str = ""
    boot_id: str = _field(default="", name="bootID")
    container_runtime_version: str = ""
    kernel_version: str = ""
    kube_proxy_version: str = ""
    kubelet_version: str = ""
    machine_id: str = _field(default="", name="machineID")
    operating_system: str = ""
    os_image: str = ""
    running_in_user_namespace: bool | None = None
    swap: NodeSwapStatus | None = None
    system_uuid: str = _field(default="", name="systemUUID")


class ObjectFieldSelector(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    api_version: str = ""
    field_path: str = ""


class PersistentVolumeClaimSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    access_modes: tuple[str, ...] = ()
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    resources: VolumeResourceRequirements | None = None
    selector: meta_v1.LabelSelector | None = None
    storage_class_name: str = ""
    volume_attributes_class_name: str = ""
    volume_mode: str = ""
    volume_name: str = ""


class PersistentVolumeClaimStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    access_modes: tuple[str, ...] = ()
    allocated_resource_statuses: dict[str, str] = {}
    allocated_resources: dict[str, str] = {}
    capacity: dict[str, str] = {}
    conditions: tuple[PersistentVolumeClaimCondition, ...] = ()
    current_volume_attributes_class_name: str = ""
    health_status: VolumeHealthStatus | None = None
    modify_volume_status: ModifyVolumeStatus | None = None
    phase: str = ""


class PersistentVolumeClaim(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class PersistentVolumeClaimCondition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    last_probe_time: str = ""
    last_transition_time: str = ""
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class PersistentVolumeClaimTemplate(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class PersistentVolumeClaimVolumeSource(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    claim_name: str = ""
    read_only: bool | None = None


class PodStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    allocated_resources: dict[str, str] = {}
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    host_ip: str = _field(default="", name="hostIP")
    host_ips: tuple[HostIP, ...] = _field(default=(), name="hostIPs")
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    message: str = ""
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()
    nominated_node_name: str = ""
    observed_generation: int | None = None
    phase: str = ""
    pod_ip: str = _field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] = _field(default=(), name="podIPs")
    qos_class: str = ""
    reason: str = ""
    resize: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    resources: ResourceRequirements | None = None
    start_time: str = ""
    volume_health: tuple[PodVolumeHealth, ...] = ()


class Pod(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodAffinity(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class PodAffinityTerm(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    label_selector: meta_v1.LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()
    namespace_selector: meta_v1.LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""


class PodAntiAffinity(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class PodCertificateProjection(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    certificate_chain_path: str = ""
    credential_bundle_path: str = ""
    key_path: str = ""
    key_type: str = ""
    max_expiration_seconds: int | None = None
    signer_name: str = ""
    user: int | None = None
    user_annotations: dict[str, str] = {}


class PodCondition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    last_probe_time: str = ""
    last_transition_time: str = ""
    message: str = ""
    observed_generation: int | None = None
    reason: str = ""
    status: str = ""
    type: str = ""


class PodDNSConfig(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    nameservers: tuple[str, ...] = ()
    options: tuple[PodDNSConfigOption, ...] = ()
    searches: tuple[str, ...] = ()


class PodDNSConfigOption(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    value: str = ""


class PodExtendedResourceClaimStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodIP(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    ip: str = ""


class PodOS(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""


class PodReadinessGate(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    condition_type: str = ""


class PodResourceClaim(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    resource_claim_name: str | None = None


class PodSchedulingGate(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""


class PodSchedulingGroup(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    pod_group_name: str = ""


class PodSecurityContext(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    app_armor_profile: AppArmorProfile | None = None
    fs_group: int | None = None
    fs_group_change_policy: str = ""
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_change_policy: str = ""
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    supplemental_groups: tuple[int, ...] = ()
    supplemental_groups_policy: str = ""
    sysctls: tuple[Sysctl, ...] = ()
    windows_options: WindowsSecurityContextOptions | None = None


class PodVolumeHealth(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    health_conditions: tuple[VolumeHealthCondition, ...] = ()
    last_transition_time: str = ""
    name: str = ""


class PreferredSchedulingTerm(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    preference: NodeSelectorTerm = NodeSelectorTerm()
    weight: int = 0


class Probe(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    exec: ExecAction | None = None
    failure_threshold: int | None = None
    grpc: GRPCAction | None = None
    http_get: HTTPGetAction | None = None
    initial_delay_seconds: int | None = None
    period_seconds: int | None = None
    success_threshold: int | None = None
    tcp_socket: TCPSocketAction | None = None
    termination_grace_period_seconds: int | None = None
    timeout_seconds: int | None = None


class ProjectedVolumeSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    default_mode: int | None = None
    default_user: int | None = None
    sources: tuple[VolumeProjection, ...] = ()


class ResourceClaim(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    request: str = ""


class ResourceFieldSelector(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    container_name: str = ""
    divisor: str = ""
    resource: str = ""


class ResourceHealth(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    health: str = ""
    message: str = ""
    resource_id: str = _field(default="", name="resourceID")


class ResourceQuotaSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    hard: dict[str, str] = {}
    scope_selector: ScopeSelector | None = None
    scopes: tuple[str, ...] = ()


class ResourceQuotaStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    hard: dict[str, str] = {}
    used: dict[str, str] = {}


class ResourceQuota(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class ResourceRequirements(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    claims: tuple[ResourceClaim, ...] = ()
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}


class ResourceStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    name: str = ""
    resources: tuple[ResourceHealth, ...] = ()


class SELinuxOptions(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    level: str = ""
    role: str = ""
    type: str = ""
    user: str = ""


class ScopeSelector(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ScopedResourceSelectorRequirement(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    operator: str = ""
    scope_name: str = ""
    values: tuple[str, ...] = ()


class SeccompProfile(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    localhost_profile: str = ""
    type: str = ""


class Secret(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    data: dict[str, str] = {}
    immutable: bool | None = None
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    string_data: dict[str, str] = {}
    type: str = ""


class SecretEnvSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    optional: bool | None = None


class SecretKeySelector(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    key: str = ""
    name: str = ""
    optional: bool | None = None


class SecretProjection(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    items: tuple[KeyToPath, ...] = ()
    name: str = ""
    optional: bool | None = None


class SecretVolumeSource(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    default_mode: int | None = None
    default_user: int | None = None
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None
    secret_name: str = ""


class SecurityContext(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    allow_privilege_escalation: bool | None = None
    app_armor_profile: AppArmorProfile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str = ""
    read_only_root_filesystem: bool | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    windows_options: WindowsSecurityContextOptions | None = None


class ServiceAccount(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    automount_service_account_token: bool | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    secrets: tuple[ObjectReference, ...] = ()


class ServiceAccountTokenProjection(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    audience: str = ""
    expiration_seconds: int | None = None
    path: str = ""
    user: int | None = None


class SleepAction(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    seconds: int = 0


class Sysctl(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    value: str = ""


class TCPSocketAction(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    host: str = ""
    port: int | str | None = None


class Taint(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    effect: str = ""
    key: str = ""
    time_added: str = ""
    value: str = ""


class Toleration(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    effect: str = ""
    key: str = ""
    operator: str = ""
    toleration_seconds: int | None = None
    value: str = ""


class TopologySpreadConstraint(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    label_selector: meta_v1.LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    max_skew: int = 0
    min_domains: int | None = None
    node_affinity_policy: str = ""
    node_taints_policy: str = ""
    topology_key: str = ""
    when_unsatisfiable: str = ""


class TypedLocalObjectReference(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class TypedObjectReference(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    api_group: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""


class Volume(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    azure_file: dict[str, Any] | None = None
    cephfs: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    config_map: ConfigMapVolumeSource | None = None
    csi: dict[str, Any] | None = None
    downward_api: DownwardAPIVolumeSource | None = _field(default=None, name="downwardAPI")
    empty_dir: EmptyDirVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    fc: dict[str, Any] | None = None
    flex_volume: dict[str, Any] | None = None
    flocker: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    git_repo: dict[str, Any] | None = None
    glusterfs: dict[str, Any] | None = None
    host_path: HostPathVolumeSource | None = None
    image: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None
    name: str = ""
    nfs: dict[str, Any] | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    photon_persistent_disk: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    projected: ProjectedVolumeSource | None = None
    quobyte: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None
    scale_io: dict[str, Any] | None = _field(default=None, name="scaleIO")
    secret: SecretVolumeSource | None = None
    storageos: dict[str, Any] | None = None
    vsphere_volume: dict[str, Any] | None = None


class VolumeDevice(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    device_path: str = ""
    name: str = ""


class VolumeHealthCondition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    message: str = ""
    reason: str = ""
    status: str = ""


class VolumeHealthStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    health_conditions: tuple[VolumeHealthCondition, ...] = ()
    last_transition_time: str = ""


class VolumeMount(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    bind_mount_options: tuple[str, ...] = ()
    mount_path: str = ""
    mount_propagation: str = ""
    name: str = ""
    read_only: bool | None = None
    recursive_read_only: str = ""
    sub_path: str = ""
    sub_path_expr: str = ""


class VolumeMountStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    mount_path: str = ""
    name: str = ""
    read_only: bool | None = None
    recursive_read_only: str = ""
    volume_status: VolumeStatus | None = None


class VolumeProjection(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    config_map: ConfigMapProjection | None = None
    downward_api: DownwardAPIProjection | None = _field(default=None, name="downwardAPI")
    pod_certificate: PodCertificateProjection | None = None
    secret: SecretProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None


class VolumeResourceRequirements(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}


class VolumeStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    image: ImageVolumeStatus | None = None


class WeightedPodAffinityTerm(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()
    weight: int = 0


class WindowsSecurityContextOptions(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    gmsa_credential_spec: str = ""
    gmsa_credential_spec_name: str = ""
    host_process: bool | None = None
    run_as_user_name: str = ""
