"""Every selector case observed on a real Kubernetes: outcome, message, costs and admission, in both versions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.shared_cases import read_cases

from kubedra import cel
from kubedra.base.features import FeatureGates

_GATES = ("DRAConsumableCapacity", "DRAListTypeAttributes")
_VERDICTS = {"too-long": "reject-too-long", "invalid": "reject-invalid", "too-complex": "reject-cost"}


def _answer(case: dict[str, Any], version: str) -> dict[str, Any]:
    gates = FeatureGates(version, {gate: gate in case["features"] for gate in _GATES})
    tree = dict(case["device"])
    lists = version == "1.37" or gates.enabled("DRAListTypeAttributes")
    device = cel.device_input_from_tree(tree.pop("driver"), tree, lists_supported=lists)
    refused = cel.check_selector_for_admission(case["expr"], features=gates, version=version)
    answer: dict[str, Any] = {"admission": _VERDICTS[refused[0][0]] if refused else "accept"}
    try:
        selector = cel.compile_selector(case["expr"], features=gates, version=version, stored=True)
    except cel.CompileError as error:
        return answer | {"result": "compile-error", "message": str(error)}
    outcome, cost = selector.measure(device)
    answer |= {"estimatedCost": selector.estimated_cost, "actualCost": cost}
    try:
        fast: object = selector.evaluate(device)
    except cel.EvaluationError as error:
        fast = str(error)
    if isinstance(outcome, cel.EvaluationError):
        assert fast == str(outcome)
        return answer | {"result": "runtime-error", "message": str(outcome)}
    assert fast is outcome
    return answer | {"result": outcome, "message": ""}


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_every_case_has_the_observed_answer(version: str) -> None:
    suffix = "_v137" if version == "1.37" else ""
    wrong = []
    for case in read_cases("cel-selectors.jsonl.gz"):
        answer = _answer(case, version)
        expected = {
            "result": case.get(f"expect{suffix}", case["expect"]),
            "message": case.get(f"message{suffix}", case["message"]),
            "admission": case["admission"],
        }
        expected |= {name: case[name] for name in ("estimatedCost", "actualCost") if name in case}
        differing = {name: (answer.get(name), value) for name, value in expected.items() if answer.get(name) != value}
        if differing:
            wrong.append((case["id"], case["expr"], differing))
    assert wrong == []
