"""Every selector case observed on a real Kubernetes: outcome, message, costs and admission, in both versions."""

from __future__ import annotations

from typing import Any

import pytest

from kubedra import cel
from kubedra.base.features import FeatureGates
from tests.shared_cases import read_cases

_GATES = ("DRAConsumableCapacity", "DRAListTypeAttributes")


def _answer(case: dict[str, Any], version: str) -> dict[str, Any]:
    answer = cel.answer_case(case, version)
    if answer["result"] != "compile-error":
        assert _fast(case, version) == (answer["message"] or answer["result"])
    return answer


def _fast(case: dict[str, Any], version: str) -> object:
    gates = FeatureGates(version, {gate: gate in case["features"] for gate in _GATES})
    tree = dict(case["device"])
    device = cel.device_input_from_tree(tree.pop("driver"), tree, lists_supported=cel.lists_supported(gates))
    selector = cel.compile_selector(case["expr"], features=gates, version=version, stored=True)
    try:
        return selector.evaluate(device)
    except cel.EvaluationError as error:
        return str(error)


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
