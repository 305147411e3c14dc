"""Answers one recorded case: a selector, a device, gates; what compiles, what it costs, what admission says.

This is how selectors are tested from outside (``kubedra cel eval --jsonl``) and how other implementations are compared
with this one; the fields are those of the recorded cases. Never raises: a case that is no case is answered with why.

Upstream has no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubedra.base.features import FeatureGates
from kubedra.cel.device import DeviceInput, device_input_from_tree
from kubedra.cel.errors import CompileError, EvaluationError
from kubedra.cel.library.versions import minor
from kubedra.cel.selector import check_selector_for_admission, compile_selector

_GATES: Final = ("DRAConsumableCapacity", "DRAListTypeAttributes")
_VERDICTS: Final = {"too-long": "reject-too-long", "invalid": "reject-invalid", "too-complex": "reject-cost"}
HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)


def lists_supported(features: FeatureGates) -> bool:
    """Whether list attributes are converted: always from 1.37 on, in 1.36 under their gate, not before."""
    number = minor(features.version)
    return number >= 37 or (number == 36 and features.enabled("DRAListTypeAttributes"))


def with_hint(message: str, version: str) -> str:
    """The message of a failed selector as the scheduler of that version reports it."""
    return message + HINT if minor(version) >= 37 and "no such key:" in message else message


def answer_case(case: Any, version: str) -> dict[str, Any]:
    """``{"id", "result", "message", "estimatedCost", "actualCost", "admission"}`` for one case."""
    if not isinstance(case, Mapping) or not isinstance(case.get("expr"), str):
        id_ = case.get("id") if isinstance(case, Mapping) else None
        return _answer(id_, "invalid-case", 'a case is an object with the text "expr"')
    gates = _gates(case.get("features"), version)
    expression = case["expr"]
    refused = check_selector_for_admission(expression, features=gates, version=version)
    verdict = _VERDICTS[refused[0][0]] if refused else "accept"
    try:
        selector = compile_selector(expression, features=gates, version=version, stored=True)
    except CompileError as error:
        return _answer(case.get("id"), "compile-error", str(error), admission=verdict)
    estimated = selector.estimated_cost
    device = _device(case.get("device"), lists_supported(gates))
    if isinstance(device, str):
        return _answer(case.get("id"), "runtime-error", device, estimated, None, verdict)
    outcome, cost = selector.measure(device)
    if isinstance(outcome, EvaluationError):
        return _answer(case.get("id"), "runtime-error", str(outcome), estimated, cost, verdict)
    return _answer(case.get("id"), outcome, "", estimated, cost, verdict)


def _answer(
    id_: Any,
    result: bool | str,
    message: str,
    estimated: int | None = None,
    actual: int | None = None,
    admission: str | None = None,
) -> dict[str, Any]:
    return {
        "id": id_,
        "result": result,
        "message": message,
        "estimatedCost": estimated,
        "actualCost": actual,
        "admission": admission,
    }


def _gates(named: Any, version: str) -> FeatureGates:
    if not isinstance(named, list | tuple):
        return FeatureGates(version)
    return FeatureGates(version, {gate: gate in named for gate in _GATES})


def _device(tree: Any, lists: bool) -> DeviceInput | str:
    if not isinstance(tree, Mapping):
        return "the case has no device"
    rest = {name: value for name, value in tree.items() if name != "driver"}
    driver = tree.get("driver", "")
    try:
        return device_input_from_tree(driver if isinstance(driver, str) else "", rest, lists_supported=lists)
    except ValueError as error:
        return f"device: {error}"
