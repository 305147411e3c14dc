"""A container's command and environment from its spec: references resolved, ``$(NAME)`` expanded.

Pure: what was fetched from the API comes in as Sources. Upstream counterpart: makeEnvironmentVariables of
pkg/kubelet/kubelet_pods.go, k8s.io/kubernetes/third_party/forked/golang/expansion and pkg/fieldpath.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

import msgspec

from kubedra.api.core_v1 import Container, EnvVarSource, Pod, ResourceFieldSelector
from kubedra.base.quantity import Quantity

_REFERENCE = re.compile(r"\$(\$|\(([^)]*)\))")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


class ConfigError(Exception):
    """A container can't be configured; the text is upstream's sentence for the waiting state."""

    reason = "CreateContainerConfigError"


class Sources(msgspec.Struct, frozen=True):
    """The ConfigMaps and Secrets that a pod names, decoded; None where the API has none."""

    config_maps: Mapping[str, Mapping[str, bytes] | None] = {}
    secrets: Mapping[str, Mapping[str, bytes] | None] = {}


class NodeFacts(msgspec.Struct, frozen=True):
    """What the environment may say of the node."""

    name: str
    host_ip: str
    allocatable: Mapping[str, str] = {}


def config_map_data(data: Mapping[str, str], binary: Mapping[str, str]) -> dict[str, bytes]:
    """All keys of a ConfigMap as bytes."""
    return {key: value.encode() for key, value in data.items()} | {k: base64.b64decode(v) for k, v in binary.items()}


def secret_data(data: Mapping[str, str]) -> dict[str, bytes]:
    """All keys of a Secret as bytes."""
    return {key: base64.b64decode(value) for key, value in data.items()}


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replaces ``$(NAME)`` by a variable that exists; ``$$`` is a dollar sign, anything else stays as it is."""

    def replace(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return variables.get(match[2], match[0])

    return _REFERENCE.sub(replace, text)


def references(pod: Pod) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the ConfigMaps and Secrets that containers' environments and volumes name."""
    maps: set[str] = set()
    secrets: set[str] = set()
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for source in container.env_from:
            if source.config_map_ref is not None:
                maps.add(source.config_map_ref.name)
            if source.secret_ref is not None:
                secrets.add(source.secret_ref.name)
        for variable in container.env:
            if variable.value_from is not None and variable.value_from.config_map_key_ref is not None:
                maps.add(variable.value_from.config_map_key_ref.name)
            if variable.value_from is not None and variable.value_from.secret_key_ref is not None:
                secrets.add(variable.value_from.secret_key_ref.name)
    for volume in pod.spec.volumes:
        if volume.config_map is not None:
            maps.add(volume.config_map.name)
        if volume.secret is not None:
            secrets.add(volume.secret.secret_name)
        for projection in volume.projected.sources if volume.projected is not None else ():
            if projection.config_map is not None:
                maps.add(projection.config_map.name)
            if projection.secret is not None:
                secrets.add(projection.secret.name)
    return frozenset(maps), frozenset(secrets)


def field_value(pod: Pod, path: str, node: NodeFacts) -> str:
    """The downward API's value of a pod field; raises ConfigError for a path that it does not have."""
    meta = pod.metadata
    if match := _SUBSCRIPT.fullmatch(path):
        return (meta.labels if match[1] == "labels" else meta.annotations).get(match[2], "")
    simple = {
        "metadata.name": meta.name,
        "metadata.namespace": meta.namespace,
        "metadata.uid": meta.uid,
        "spec.nodeName": node.name,
        "spec.serviceAccountName": pod.spec.service_account_name or "default",
        "status.hostIP": node.host_ip,
        "status.hostIPs": node.host_ip,
        "status.podIP": node.host_ip,
        "status.podIPs": node.host_ip,
    }
    if path in simple:
        return simple[path]
    if path in ("metadata.labels", "metadata.annotations"):
        values = meta.labels if path == "metadata.labels" else meta.annotations
        return "\n".join(f'{key}="{_quoted(value)}"' for key, value in sorted(values.items()))
    raise ConfigError(f"unsupported fieldPath: {path}")


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource_value(container: Container, selector: ResourceFieldSelector, node: NodeFacts) -> str:
    """The downward API's value of a container's request or limit, divided and rounded up as upstream does."""
    kind, _, resource = selector.resource.partition(".")
    resources = container.resources
    limits = resources.limits if resources is not None else {}
    requests = resources.requests if resources is not None else {}
    if kind == "limits":
        text = limits.get(resource) or node.allocatable.get(resource, "0")
    elif kind == "requests":
        text = requests.get(resource) or limits.get(resource) or "0"
    else:
        raise ConfigError(f"unsupported container resource : {selector.resource}")
    divisor = Quantity.parse(selector.divisor or "1")
    if divisor.sign == 0:
        divisor = Quantity.parse("1")
    value = Quantity.parse(text)
    if resource == "cpu":
        return str(-(-value.milli_value() // max(divisor.milli_value(), 1)))
    return str(-(-value.value() // max(divisor.value(), 1)))


def container_env(
    pod: Pod, container: Container, sources: Sources, node: NodeFacts, base: Mapping[str, str]
) -> dict[str, str]:
    """The container's environment, later entries over earlier ones; raises ConfigError."""
    env = dict(base)
    for source in container.env_from:
        if source.config_map_ref is not None:
            name, optional = source.config_map_ref.name, source.config_map_ref.optional
            data = _whole("configmap", sources.config_maps.get(name), name, bool(optional))
        elif source.secret_ref is not None:
            name, optional = source.secret_ref.name, source.secret_ref.optional
            data = _whole("secret", sources.secrets.get(name), name, bool(optional))
        else:
            continue
        for key, value in sorted(data.items()):
            if _VARIABLE.fullmatch(source.prefix + key):
                env[source.prefix + key] = value.decode(errors="replace")
    own: dict[str, str] = {}
    for variable in container.env:
        if variable.value_from is None:
            value_ = expand(variable.value, env | own)
        else:
            found = _from(pod, container, variable.value_from, sources, node)
            if found is None:
                continue
            value_ = found
        own[variable.name] = value_
    return env | own


def _whole(kind: str, data: Mapping[str, bytes] | None, name: str, optional: bool) -> Mapping[str, bytes]:
    if data is None and not optional:
        raise ConfigError(f'{kind} "{name}" not found')
    return data or {}


def _from(pod: Pod, container: Container, source: EnvVarSource, sources: Sources, node: NodeFacts) -> str | None:
    if source.field_ref is not None:
        return field_value(pod, source.field_ref.field_path, node)
    if source.resource_field_ref is not None:
        wanted = source.resource_field_ref.container_name
        others = (*pod.spec.init_containers, *pod.spec.containers)
        named = next((other for other in others if other.name == wanted), container) if wanted else container
        return resource_value(named, source.resource_field_ref, node)
    if source.config_map_key_ref is not None:
        ref = source.config_map_key_ref
        return _key("configmap", "ConfigMap", sources.config_maps.get(ref.name), ref.name, ref.key, ref.optional, pod)
    if source.secret_key_ref is not None:
        secret = source.secret_key_ref
        data = sources.secrets.get(secret.name)
        return _key("secret", "Secret", data, secret.name, secret.key, secret.optional, pod)
    raise ConfigError("this kind of valueFrom is not implemented by this node agent")


def _key(
    lower: str, kind: str, data: Mapping[str, bytes] | None, name: str, key: str, optional: bool | None, pod: Pod
) -> str | None:
    if data is None:
        if optional:
            return None
        raise ConfigError(f'{lower} "{name}" not found')
    if key not in data:
        if optional:
            return None
        raise ConfigError(f"couldn't find key {key} in {kind} {pod.metadata.namespace}/{name}")
    return data[key].decode(errors="replace")


def container_command(container: Container, env: Mapping[str, str]) -> tuple[str, ...]:
    """Command and arguments with variables expanded; empty when the image would have to name the command."""
    if not container.command:
        return ()
    return tuple(expand(part, env) for part in (*container.command, *container.args))
