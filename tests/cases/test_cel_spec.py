"""The CEL specification's own tests, in the environment of Kubernetes 1.37 wherever that does not contradict them.

Tests marked "special" need variables, declarations or no checking; they run as plain CEL. Tests that only mix types in
a literal, which Kubernetes forbids, run as plain CEL, too. What Kubernetes answers differently is listed with the
reason; the list may not hold a test that passes.
"""

from __future__ import annotations

import base64
import dataclasses
import math
from typing import Any

from kubedra import cel
from kubedra.cel import types
from kubedra.cel.device import device_environment
from kubedra.cel.environment import Environment, Function, Overload
from kubedra.cel.plain import compile_unchecked, plain_environment
from kubedra.cel.selector import Program, compile_program
from kubedra.cel.types import Type
from kubedra.cel.values import UInt, key_of
from tests.shared_cases import read_cases

_FORMAT_2 = "Kubernetes has version 2 of the string extension: locale-aware numbers, doubles only for %f and %e"
_GO = "cel-go answers so, and Kubernetes with it"
_SCALAR = "Kubernetes leaves cel-go's error for selections from a scalar off: the optional is empty"
_MAPPED = "Kubernetes refuses IPv4-mapped IPv6 addresses"
_NO_REVERSE = "Kubernetes' version 2 of the string extension has no reverse"
_LOST = "the published expression lost the backslash that the expected bytes have"

DIFFERENT = {
    "fields/qualified_identifier_resolution/map_key_float": f"double keys are allowed in literals: {_GO}",
    "fields/qualified_identifier_resolution/map_value_repeat_key": f"the last of equal keys wins: {_GO}",
    "network_ext/ipv4/ipv4_equals_ipv6": _MAPPED,
    "network_ext/ipv4/ipv4_not_equals_ipv6": _MAPPED,
    "optionals/optionals/map_null_entry_no_such_key": _SCALAR,
    "optionals/optionals/map_present_key_invalid_field": _SCALAR,
    "parse/bytes_literals/triple_single_quoted_unescaped_punctuation": _LOST,
    "parse/bytes_literals/triple_double_quoted_unescaped_punctuation": _LOST,
    "string_ext/format/scientific notation formatting clause": _FORMAT_2,
    "string_ext/format/default precision for fixed-point clause with int": _FORMAT_2,
    "string_ext/format/default precision for fixed-point clause with uint": _FORMAT_2,
    "string_ext/format/default precision for scientific notation": _FORMAT_2,
    "string_ext/format/default precision for scientific notation with int": _FORMAT_2,
    "string_ext/format/default precision for scientific notation with uint": _FORMAT_2,
    "string_ext/format/positive infinity support for scientific notation": _FORMAT_2,
    "string_ext/format/negative infinity support for scientific notation": _FORMAT_2,
    "string_ext/format/NaN support for decimal": _FORMAT_2,
    "string_ext/format/positive infinity support for decimal": _FORMAT_2,
    "string_ext/format/negative infinity support for decimal": _FORMAT_2,
    "string_ext/format/positive infinity support for fixed-point": _FORMAT_2,
    "string_ext/format/negative infinity support for fixed-point": _FORMAT_2,
    "string_ext/format/map support (all key types)": _FORMAT_2,
    "string_ext/format/list support for string": _FORMAT_2,
    "string_ext/format/map support for string": _FORMAT_2,
    "string_ext/format/dyntype support for lists": _FORMAT_2,
    "string_ext/format/dyntype support for maps": _FORMAT_2,
    "string_ext/format/dyntype support for scientific notation": _FORMAT_2,
    "string_ext/format/dyntype NaN/infinity support": _FORMAT_2,
    "string_ext/format/scientific notation formatting clause in a string variable": _FORMAT_2,
    "string_ext/value_errors/indexof_out_of_range": f"beyond the end is -1: {_GO}",
    "string_ext/value_errors/lastindexof_out_of_range": f"beyond the end is -1: {_GO}",
    "string_ext/reverse/empty": _NO_REVERSE,
    "string_ext/reverse/single_character": _NO_REVERSE,
    "string_ext/reverse/multiple": _NO_REVERSE,
    "type_deduction/legacy_nullable_types/null_assignable_to_abstract_parameter_candidate": f"null wins: {_GO}",
}
_KUBERNETES = dataclasses.replace(device_environment("1.37", True, True, True), variables={}, escaped_identifiers=True)
_PRIMITIVES = {
    "INT64": types.INT,
    "UINT64": types.UINT,
    "DOUBLE": types.DOUBLE,
    "BOOL": types.BOOL,
    "STRING": types.STRING,
    "BYTES": types.BYTES,
}


def _type(tree: dict[str, Any]) -> Type:
    ((kind, inner),) = tree.items()
    if kind == "primitive":
        return _PRIMITIVES[inner]
    if kind == "list_type":
        return types.list_of(_type(inner["elem_type"]))
    if kind == "map_type":
        return types.map_of(_type(inner["key_type"]), _type(inner["value_type"]))
    if kind == "abstract_type":
        return Type("opaque", inner["name"], tuple(_type(item) for item in inner.get("parameter_types", [])))
    if kind == "type_param":
        return types.param(inner)
    if kind == "type":
        return types.type_of(_type(inner)) if inner else types.TYPE
    if kind == "well_known":
        return {"ANY": types.ANY, "DURATION": types.DURATION, "TIMESTAMP": types.TIMESTAMP}[inner]
    if kind == "message_type":
        return types.struct(inner)
    return {"dyn": types.DYN, "null": types.NULL}[kind]


def _value(tree: dict[str, Any]) -> Any:
    ((kind, inner),) = tree.items()
    if kind == "int64_value":
        return int(inner)
    if kind == "uint64_value":
        return UInt(int(inner))
    if kind == "double_value":
        return float(inner)
    if kind == "bytes_value":
        return base64.b64decode(inner)
    if kind == "list_value":
        return [_value(item) for item in inner.get("values", [])]
    if kind == "map_value":
        return {key_of(_value(item["key"])): _value(item["value"]) for item in inner.get("entries", [])}
    return inner


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, Type):
        return two in (str(one), one.name)
    if one.__class__ is not two.__class__:
        return False
    if isinstance(one, list):
        return len(one) == len(two) and all(_same(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(_same(one[key], two[key]) for key in one)
    return bool(one == two) or (isinstance(one, float) and math.isnan(one) and math.isnan(two))


def _declared(case: dict[str, Any]) -> tuple[dict[str, Type], tuple[Function, ...]]:
    variables: dict[str, Type] = dict.fromkeys(case.get("bindings", {}), types.DYN)
    functions = []
    for declaration in case.get("type_env", []):
        if "ident" in declaration:
            variables[declaration["name"]] = _type(declaration["ident"]["type"])
            continue
        overloads = tuple(
            Overload(item["overload_id"], tuple(map(_type, item.get("params", []))), _type(item["result_type"]))
            for item in declaration["function"]["overloads"]
        )
        functions.append(Function(declaration["name"], overloads))
    return variables, tuple(functions)


def _fault(case: dict[str, Any], environment: Environment) -> str:
    """Why the case fails in an environment; empty if it passes."""
    bindings = {name: _value(item["value"]) for name, item in case.get("bindings", {}).items()}
    program: Program | None = None
    outcome: Any = None
    try:
        compile_ = compile_unchecked if case.get("disable_check") else compile_program
        program = compile_(case["expr"], environment)
        if not case.get("check_only"):
            outcome, _ = program.measure(program.frame(bindings))
            fast = program.closure()
            try:
                quick: Any = fast([*program.frame(bindings), *[None] * program.room])
            except cel.EvaluationError as error:
                quick = error
            if isinstance(quick, Exception) != isinstance(outcome, Exception):
                return f"evaluators disagree: {outcome!r} and {quick!r}"
    except cel.CompileError as error:
        outcome = error
    if "eval_error" in case:
        return "" if isinstance(outcome, cel.CelError) else f"{outcome!r} instead of an error"
    if isinstance(outcome, cel.CelError):
        return str(outcome)
    deduced = case.get("typed_result", {}).get("deduced_type")
    if deduced and program is not None and str(program.output_type) != str(_type(deduced)):
        return f"type {program.output_type}"
    wanted = case.get("value") or case.get("typed_result", {}).get("result") or {"bool_value": True}
    if case.get("check_only") or _same(outcome, _value(wanted)):
        return ""
    return f"{outcome!r} instead of {wanted}"


def _mixes_types(fault: str) -> bool:
    return "expected type '" in fault


def _run(applies: str) -> tuple[int, list[str]]:
    wrong: list[str] = []
    passed = 0
    for case in read_cases("cel-spec.jsonl.gz"):
        if case["applies"] != applies:
            continue
        name = f"{case['file']}/{case['section']}/{case['name']}"
        plain = plain_environment(*_declared(case))
        fault = _fault(case, _KUBERNETES if applies == "yes" else plain)
        if fault and applies == "yes" and _mixes_types(fault):
            fault = _fault(case, plain)
        if name in DIFFERENT:
            if not fault:
                wrong.append(f"{name} passes; take it off the list")
        elif fault:
            wrong.append(f"{name}: {case['expr']}: {fault}")
        else:
            passed += 1
    return passed, wrong


def test_what_applies_as_it_is() -> None:
    passed, wrong = _run("yes")
    assert wrong == []
    assert passed >= 1310


def test_what_needs_declarations_or_no_checking() -> None:
    passed, wrong = _run("special")
    assert wrong == []
    assert passed >= 144
