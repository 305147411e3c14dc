"""Rules of resource claims in pods: which claims a pod has, which containers use them, and their statuses.

Upstream counterpart: validatePodResourceClaims, validateContainerResourceClaims and the status rules of
pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.validation import formats

Tree = dict[str, Any]

_ONE_SOURCE = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
_NO_SOURCE = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_CLAIM_PREFIX = "claim:"


def validate_pod_claims(claims: Any, path: str) -> list[FieldError]:
    """Check the claims of a pod."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(claims or ()):
        at = f"{path}[{index}]"
        name = claim.get("name") or ""
        if not name:
            errors.append(fields.required(f"{at}.name"))
        elif name in seen:
            errors.append(fields.duplicate(f"{at}.name", name))
        else:
            errors.extend(formats.label(name, f"{at}.name"))
            seen.add(name)
        given = [source for source in _SOURCES if claim.get(source) is not None]
        if len(given) != 1:
            shown = {"Name": name, **{source[0].upper() + source[1:]: claim.get(source) for source in _SOURCES}}
            errors.append(fields.invalid(at, shown, _ONE_SOURCE if given else _NO_SOURCE))
        for source in given:
            errors.extend(formats.subdomain(claim[source], f"{at}.{source}"))
    return errors


def validate_container_claims(claims: Any, pod_claims: Any, path: str) -> list[FieldError]:
    """Check the claims that a container uses: each is one of the pod's, whole or by request, once."""
    known = [claim.get("name") or "" for claim in pod_claims or ()]
    errors: list[FieldError] = []
    used: set[str] = set()
    parts: set[str] = set()
    for index, claim in enumerate(claims or ()):
        at = f"{path}[{index}]"
        name, request = claim.get("name") or "", claim.get("request") or ""
        if not name:
            errors.append(fields.required(at))
            continue
        if request:
            errors.extend(formats.label(request, f"{at}.request"))
        key = f"{name}/{request}" if request else name
        if name in used or key in used or (not request and name in parts):
            errors.append(fields.duplicate(at, name if name in used else key))
        else:
            used.add(key)
            if request:
                parts.add(name)
        if name not in known:
            listed = ": " + ", ".join(known) if known else " which is empty"
            text = f"must be one of the names in pod.spec.resourceClaims{listed}"
            errors.append(fields.not_found(at, name, text))
    return errors


def validate_claim_statuses(statuses: Any, pod_claims: Any, path: str) -> list[FieldError]:
    """Check which claims the pod's entries have become."""
    known = {claim.get("name") for claim in pod_claims or ()}
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, status in enumerate(statuses or ()):
        at = f"{path}[{index}]"
        name = status.get("name") or ""
        if not name:
            errors.append(fields.required(f"{at}.name"))
        elif name not in known:
            text = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(fields.invalid(f"{at}.name", name, text))
        if name in seen:
            errors.append(fields.duplicate(f"{at}.name", name))
        seen.add(name)
        generated = status.get("resourceClaimName")
        if generated is not None:
            errors.extend(formats.subdomain(generated, f"{at}.resourceClaimName"))
    return errors


def validate_extended_status(status: Tree, spec: Tree, path: str) -> list[FieldError]:
    """Check which request of the scheduler's claim stands for which extended resource of which container."""
    errors: list[FieldError] = []
    requested = {
        container.get("name"): set((container.get("resources") or {}).get("requests") or ())
        for list_name in ("initContainers", "containers")
        for container in spec.get(list_name) or ()
    }
    mappings = status.get("requestMappings") or []
    if not mappings:
        errors.append(fields.required(f"{path}.requestMappings", "at least one request mapping is required"))
    for index, mapping in enumerate(mappings):
        at = f"{path}.requestMappings[{index}]"
        container, resource = mapping.get("containerName") or "", mapping.get("resourceName") or ""
        if container not in requested:
            text = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            errors.append(fields.invalid(f"{at}.containerName", container, text))
        elif resource not in requested[container]:
            text = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests "
                "or spec.containers.resources.requests"
            )
            errors.append(fields.invalid(f"{at}.resourceName", resource, text))
        # Upstream leaves the index out of this path.
        errors.extend(formats.label(mapping.get("requestName") or "", f"{path}.requestName"))
    errors.extend(formats.required_subdomain(status.get("resourceClaimName") or "", f"{path}.resourceClaimName"))
    return errors


def validate_health(statuses: Any, container: Tree, path: str) -> list[FieldError]:
    """Check the health of the resources of one container."""
    resources = container.get("resources") or {}
    claims = {
        _CLAIM_PREFIX + claim["name"] + (f"/{claim['request']}" if claim.get("request") else "")
        for claim in resources.get("claims") or ()
        if claim.get("name")
    }
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, status in enumerate(statuses or ()):
        at = f"{path}[{index}]"
        name = status.get("name") or ""
        if name in names:
            errors.append(fields.duplicate(f"{at}.name", name))
        names.add(name)
        if name.startswith(_CLAIM_PREFIX):
            if name not in claims:
                text = (
                    "must match one of the container's resource claims in a format "
                    "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
                )
                errors.append(fields.invalid(f"{at}.name", name, text))
        elif name not in (resources.get("requests") or {}):
            errors.append(fields.invalid(f"{at}.name", name, "must match one of the container's resource requests"))
        seen: set[str] = set()
        for position, item in enumerate(status.get("resources") or ()):
            where = f"{at}.resources[{position}]"
            identity = item.get("resourceID") or ""
            if identity in seen:
                errors.append(fields.duplicate(f"{where}.resourceID", identity))
            seen.add(identity)
            health = item.get("health") or ""
            if health not in _HEALTH:
                errors.append(fields.not_supported(f"{where}.health", health, _HEALTH))
    return errors
