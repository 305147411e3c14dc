"""The selector language of Dynamic Resource Allocation: CEL as Kubernetes runs it, evaluated by ourselves.

Public: compile a selector (``compile_selector``, ``SelectorCache``), evaluate it on a device (``DeviceInput``), ask
what it reads (``ReadSet``) and what it may cost, check one as admission does. Other environments are data
(``environment.build``, ``compile_program``). Pure: no I/O, no clock; any text ends in a result or one of its errors.
"""

from kubedra.cel.answering import answer_case, lists_supported, with_hint
from kubedra.cel.device import DeviceInput, device_input_from_tree
from kubedra.cel.errors import CelError, CompileError, CostLimitError, EvaluationError
from kubedra.cel.read_sets import ReadSet
from kubedra.cel.selector import (
    COST_LIMIT,
    MAX_EXPRESSION_BYTES,
    CompiledSelector,
    Features,
    SelectorCache,
    check_selector_for_admission,
    compile_derived_attribute,
    compile_program,
    compile_selector,
    derived_value,
)

__all__ = [
    "COST_LIMIT",
    "MAX_EXPRESSION_BYTES",
    "CelError",
    "CompileError",
    "CompiledSelector",
    "CostLimitError",
    "DeviceInput",
    "EvaluationError",
    "Features",
    "ReadSet",
    "SelectorCache",
    "answer_case",
    "check_selector_for_admission",
    "compile_derived_attribute",
    "compile_program",
    "compile_selector",
    "derived_value",
    "device_input_from_tree",
    "lists_supported",
    "with_hint",
]
