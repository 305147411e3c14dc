"""Rules of the claim spec, in ResourceClaim and (one level deeper) in ResourceClaimTemplate.

The spec is immutable, so it is checked once, when it is created; an update is only compared. The status has a file
of its own.

Upstream counterpart: ValidateResourceClaim of pkg/apis/resource/validation. Quirks that cases depend on: a constraint
may name both attributes, capacity requests are not looked at, tolerations are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubedra.api import fields
from kubedra.api.canonical import same_meaning
from kubedra.api.fields import FieldError
from kubedra.validation import expressions, formats, opaque
from kubedra.validation.context import Context
from kubedra.validation.device_taint import validate_toleration
from kubedra.validation.lists import check_list, check_set
from kubedra.validation.metadata import IMMUTABLE

Tree = dict[str, Any]
RequestNames = dict[str, frozenset[str]]

REQUESTS_MAX = 32
ALTERNATIVES_MAX = 8
SELECTORS_MAX = 32
CONSTRAINTS_MAX = 32
CONFIG_MAX = 32
DERIVED_MAX = 32

_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_BAD_REFERENCE = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
_ONE_ATTRIBUTE = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'


def validate(tree: Tree, context: Context) -> list[FieldError]:
    """Check a new claim."""
    return validate_spec(tree.get("spec") or {}, "spec", context)


def validate_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed claim: its spec is what it was."""
    return validate_same_spec(new, old)


def validate_same_spec(new: Tree, old: Tree) -> list[FieldError]:
    """Refuse any change of the spec."""
    spec = new.get("spec") or {}
    if same_meaning(spec, old.get("spec") or {}):
        return []
    return [fields.invalid("spec", spec, IMMUTABLE)]


def validate_spec(spec: Tree, path: str, context: Context) -> list[FieldError]:
    """Check a new claim spec at a path."""
    claim, at = spec.get("devices") or {}, f"{path}.devices"
    known = request_names(spec)
    derivation = _Derivation(_constrained_attributes(claim.get("constraints")), expressions.Budget())

    def check_request(request: Tree, where: str) -> list[FieldError]:
        return _validate_request(request or {}, where, context, derivation)

    errors = check_set(claim.get("requests"), REQUESTS_MAX, check_request, f"{at}.requests", key=_name)
    errors.extend(
        check_list(
            claim.get("constraints"),
            CONSTRAINTS_MAX,
            lambda item, where: _validate_constraint(item, where, known, context),
            f"{at}.constraints",
        )
    )
    errors.extend(
        check_list(
            claim.get("config"),
            CONFIG_MAX,
            lambda item, where: _validate_config(item, where, known),
            f"{at}.config",
        )
    )
    if derivation.spent.is_exceeded:
        text = "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit"
        errors.append(fields.forbidden(at, text))
    return errors


def request_names(spec: Tree) -> RequestNames:
    """List the requests of a claim spec with the names of their alternatives."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    return {
        _name(request): frozenset(_name(alternative) for alternative in (request or {}).get("firstAvailable") or ())
        for request in requests
    }


def validate_reference(name: str, path: str, known: RequestNames) -> list[FieldError]:
    """Check a reference to a request or to one of its alternatives."""
    parts = name.split("/")
    if len(parts) > 2:
        return [fields.invalid(path, name, _BAD_REFERENCE)]
    errors: list[FieldError] = []
    for part in parts:
        errors.extend(formats.label(part, path))
    if parts[0] not in known or (len(parts) == 2 and parts[1] not in known[parts[0]]):
        errors.append(fields.invalid(path, name, _BAD_REFERENCE))
    return errors


def validate_references(names: Any, path: str, known: RequestNames) -> list[FieldError]:
    """Check a set of references."""
    return check_set(names, REQUESTS_MAX, lambda name, at: validate_reference(name, at, known), path)


@dataclass(frozen=True)
class _Derivation:
    """What the derived attributes of a claim are checked against."""

    constrained: dict[str, set[str]]
    spent: expressions.Budget


def _name(item: Tree | None) -> str:
    return (item or {}).get("name") or ""


def _validate_request(request: Tree, path: str, context: Context, derivation: _Derivation) -> list[FieldError]:
    name = _name(request)
    errors = formats.label(name, f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not alternatives:
        errors.append(fields.required(path, _ONE_KIND))
    elif exactly is not None and alternatives:
        errors.append(fields.invalid(path, None, f"{_ONE_KIND}, but multiple fields are set"))
    elif exactly is not None:
        errors.extend(_validate_details(exactly, f"{path}.exactly", context, name, derivation))
    else:

        def check(alternative: Tree, at: str) -> list[FieldError]:
            own = _name(alternative)
            faults = formats.label(own, f"{at}.name")
            faults.extend(_validate_details(alternative or {}, at, context, f"{name}/{own}", derivation))
            return faults

        errors.extend(check_set(alternatives, ALTERNATIVES_MAX, check, f"{path}.firstAvailable", key=_name))
    return errors


def _validate_details(
    request: Tree, path: str, context: Context, reference: str, derivation: _Derivation
) -> list[FieldError]:
    """Check what an exact request and an alternative have in common."""
    errors = formats.required_subdomain(request.get("deviceClassName") or "", f"{path}.deviceClassName")
    errors.extend(
        check_list(
            request.get("selectors"),
            SELECTORS_MAX,
            lambda item, at: expressions.validate_selector(item or {}, at, context),
            f"{path}.selectors",
        )
    )
    errors.extend(
        check_set(
            request.get("derivedAttributes"),
            DERIVED_MAX,
            lambda item, at: _validate_derived(item, at, context, reference, derivation),
            f"{path}.derivedAttributes",
            key=_name,
        )
    )
    errors.extend(_validate_amount(request.get("allocationMode") or "", request.get("count") or 0, path))
    errors.extend(check_list(request.get("tolerations"), None, validate_toleration, f"{path}.tolerations"))
    return errors


def _validate_amount(mode: str, count: int, path: str) -> list[FieldError]:
    if mode == "All":
        text = "must not be specified when allocationMode is 'All'"
        return [fields.invalid(f"{path}.count", count, text)] if count else []
    if mode == "ExactCount":
        return [fields.invalid(f"{path}.count", count, "must be greater than zero")] if count <= 0 else []
    return [fields.not_supported(f"{path}.allocationMode", mode, ("All", "ExactCount"))]


def _validate_constraint(constraint: Tree, path: str, known: RequestNames, context: Context) -> list[FieldError]:
    errors = validate_references(constraint.get("requests"), f"{path}.requests", known)
    for name in ("matchAttribute", "distinctAttribute"):
        value = constraint.get(name)
        if value is not None:
            # Where both are given, only the first is looked at.
            errors.extend(formats.fully_qualified(value, f"{path}.{name}"))
            return errors
    if context.enabled("DRAConsumableCapacity"):
        errors.append(fields.required(path, _ONE_ATTRIBUTE))
    else:
        errors.append(fields.required(f"{path}.matchAttribute"))
    return errors


def _validate_config(config: Tree, path: str, known: RequestNames) -> list[FieldError]:
    errors = validate_references(config.get("requests"), f"{path}.requests", known)
    errors.extend(opaque.validate_configuration(config, path))
    return errors


def _constrained_attributes(constraints: Any) -> dict[str, set[str]]:
    """Collect the attributes that constraints use, by the request they apply to ("" for all)."""
    used: dict[str, set[str]] = {}
    for constraint in constraints or ():
        attribute = constraint.get("matchAttribute") or constraint.get("distinctAttribute")
        if attribute:
            for name in constraint.get("requests") or ("",):
                used.setdefault(name, set()).add(attribute)
    return used


def _validate_derived(
    derived: Tree, path: str, context: Context, reference: str, derivation: _Derivation
) -> list[FieldError]:
    errors: list[FieldError] = []
    name = _name(derived)
    if not name:
        errors.append(fields.required(f"{path}.name"))
    else:
        errors.extend(formats.fully_qualified(name, f"{path}.name"))
        request = reference.partition("/")[0]
        if not any(name in derivation.constrained.get(target, ()) for target in ("", request, reference)):
            text = (
                "must be referenced by at least one matchAttribute or distinctAttribute constraint "
                "targeting this request"
            )
            errors.append(fields.invalid(f"{path}.name", name, text))
    expression = derived.get("expression") or ""
    if not expression:
        errors.append(fields.required(f"{path}.expression"))
    else:
        errors.extend(expressions.validate_derived(expression, f"{path}.expression", context, derivation.spent))
    return errors
