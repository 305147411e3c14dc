from __future__ import annotations

from typing import Any

import pytest

from kubedra import cel
from kubedra.base.features import FeatureGates

_GATES = FeatureGates("1.37")


def _compile(expression: str, version: str = "1.37", stored: bool = True, **gates: bool) -> cel.CompiledSelector:
    return cel.compile_selector(expression, features=FeatureGates(version, gates), version=version, stored=stored)


def _device(attributes: dict[str, Any] | None = None, **more: Any) -> cel.DeviceInput:
    return cel.device_input_from_tree("gpu.example.com", {"attributes": attributes or {}, **more})


_A = 'device.attributes["gpu.example.com"]'


def test_only_bool_or_an_attribute_may_come_out() -> None:
    assert _compile(f"{_A}.flag").evaluate(_device({"flag": {"bool": True}})) is True
    with pytest.raises(cel.EvaluationError, match="CEL result of type string could not be converted to bool"):
        _compile(f"{_A}.flag").evaluate(_device({"flag": {"string": "yes"}}))
    with pytest.raises(cel.CompileError, match="must evaluate to bool or the unknown type, not int"):
        _compile("1")


def test_a_malformed_attribute_fails_every_selector() -> None:
    device = _device({"v": {"version": "1.2"}})
    with pytest.raises(cel.EvaluationError, match=r"attribute v: parse semantic version: No Major.Minor.Patch"):
        _compile("true").evaluate(device)


def test_equality_is_asymmetric_as_upstream() -> None:
    device = _device({"v": {"version": "1.2.3"}})
    assert _compile(f'"1.2.3" == {_A}.v').evaluate(device) is False
    assert _compile(f'{_A}.v != "1.2.3"').evaluate(device) is True
    with pytest.raises(cel.EvaluationError, match="no such overload"):
        _compile(f'{_A}.v == "1.2.3"').evaluate(device)
    with pytest.raises(cel.EvaluationError, match=r"hash of unhashable type cel.Semver"):
        _compile(f'{_A}.v in ["1.2.3"]').evaluate(device)


def test_bools_are_no_numbers() -> None:
    device = _device({"b": {"bool": True}, "i": {"int": 1}})
    assert _compile(f"{_A}.b == 1").evaluate(device) is False
    assert _compile(f"{_A}.i == true").evaluate(device) is False
    assert _compile(f"{_A}.b in [1, 2]").evaluate(device) is False
    assert _compile("{true: 1}.size() == 1 && dyn({true: 1})[true] == 1").evaluate(device) is True


@pytest.mark.parametrize(
    ("version", "stored", "gates", "expression", "compiles"),
    [
        ("1.34", False, {}, "[1].reverse() == [1]", False),
        ("1.34", True, {}, "[1].reverse() == [1]", True),
        ("1.35", False, {}, "[1].reverse() == [1]", True),
        ("1.35", True, {}, "[1].includes(1)", False),
        ("1.36", True, {}, "[1].includes(1)", True),
        ("1.36", False, {}, "[1].includes(1)", False),
        ("1.36", False, {"DRAListTypeAttributes": True}, "[1].includes(1)", True),
        ("1.37", True, {}, "[1].includes(1)", True),
        ("1.37", False, {}, "[1].includes(1)", False),
        ("1.37", False, {"DRAListTypeAttributes": True}, "[1].includes(1)", True),
        ("1.34", False, {}, "device.allowMultipleAllocations", False),
        ("1.34", False, {"DRAConsumableCapacity": True}, "device.allowMultipleAllocations", True),
        ("1.34", True, {}, "device.allowMultipleAllocations", True),
        ("1.36", False, {}, "device.allowMultipleAllocations", True),
        ("1.36", False, {"DRAConsumableCapacity": False}, "device.allowMultipleAllocations", False),
        ("1.36", True, {}, f"{_A}.x.exists(e, e == 1)", False),
        ("1.37", True, {}, f"{_A}.x.exists(e, e == 1)", True),
        ("1.37", False, {}, f"{_A}.x.exists(e, e == 1)", False),
        ("1.37", False, {"DRAListTypeAttributes": True}, f"{_A}.x.exists(e, e == 1)", True),
    ],
)
def test_what_each_version_and_gate_knows(
    version: str, stored: bool, gates: dict[str, bool], expression: str, compiles: bool
) -> None:
    if compiles:
        _compile(expression, version, stored, **gates)
    else:
        with pytest.raises(cel.CompileError):
            _compile(expression, version, stored, **gates)


def test_includes_gives_up_after_48_in_1_36_only() -> None:
    device = _device({"l": {"ints": list(range(60))}})
    assert _compile(f"{_A}.l.includes(59)", "1.37").evaluate(device) is True
    with pytest.raises(cel.EvaluationError, match="longer than 48 values"):
        _compile(f"{_A}.l.includes(59)", "1.36", DRAListTypeAttributes=True).evaluate(device)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", []),
        ("1 +", ["invalid"]),
        ("1", ["invalid"]),
        ("true" + " " * 10240, ["too-long"]),
        ('"é" == "é"' + " " * 10232, ["too-long"]),
        ('device.capacity["d"].x != quantity("1")', ["too-complex"]),
        ('device.capacity["d"].x.compareTo(quantity("1")) != 0', []),
    ],
)
def test_admission(expression: str, expected: list[str]) -> None:
    found = cel.check_selector_for_admission(expression, features=_GATES, version="1.37")
    assert [kind for kind, _ in found] == expected


@pytest.mark.parametrize(
    ("expression", "attributes", "capacities", "exact"),
    [
        (f'{_A}.model == "x"', {("gpu.example.com", "model")}, set(), True),
        (f'has({_A}["a"].b)', {("gpu.example.com", "a")}, set(), True),
        (f'{_A}.?model.orValue("") == "x"', {("gpu.example.com", "model")}, set(), True),
        (f'"model" in {_A}', {("gpu.example.com", "model")}, set(), True),
        ('device.capacity["d"].x.isInteger()', set(), {("d", "x")}, True),
        (f"cel.bind(a, {_A}, a.x == 1 && a.y == 2)", {("gpu.example.com", "x"), ("gpu.example.com", "y")}, set(), True),
        (f"{_A}.exists(k, k == 'x')", set(), set(), False),
        ("device.attributes[device.driver].x == 1", set(), set(), False),
        ("device == device", set(), set(), False),
    ],
)
def test_the_read_set_names_what_is_read(
    expression: str, attributes: set[tuple[str, str]], capacities: set[tuple[str, str]], exact: bool
) -> None:
    reads = _compile(expression).read_set
    assert reads.attributes == attributes
    assert reads.capacities == capacities
    assert reads.is_exact is exact


def test_devices_with_equal_keys_differ_only_in_what_is_not_read() -> None:
    selector = _compile(f"{_A}.model == 1")
    one = _device({"model": {"int": 1}, "uuid": {"string": "a"}})
    two = _device({"model": {"int": 1}, "uuid": {"string": "b"}})
    other = _device({"model": {"bool": True}})
    assert selector.key(one) == selector.key(two)
    assert selector.key(one) != selector.key(other)
    assert selector.key(_device()) != selector.key(one)


def test_loops_stop_at_the_limit() -> None:
    inner = "true"
    for index in range(7):
        inner = f"[1,2,3,4,5,6,7,8,9,10].all(v{index}, {inner})"
    with pytest.raises(cel.CostLimitError, match="actual cost limit exceeded"):
        _compile(inner).evaluate(_device())


@pytest.mark.parametrize(
    "expression",
    [
        "cel.bind(a, [1,1], " * 1 + "a.size() == 2)",
        '"a".replace("", "bbbbbbbbbb")' + '.replace("b", "bbbbbbbbbb")' * 12 + ' == ""',
        "lists.range(1000000000).size() == 0",
        "".join(f"cel.bind(v{i}, v{i - 1} + v{i - 1}, " if i else "cel.bind(v0, [1, 1], " for i in range(60))
        + "v59.size() > 0"
        + ")" * 60,
        '"a".matches("(a+)+$") && "' + "a" * 3000 + '!".matches("(a|aa)+$")',
        '"x".format([' + ",".join(["1"] * 100) + "]) == ''",
        "[" * 200 + "]" * 200 + " == " + "[" * 200 + "]" * 200,
        "9" * 9000 + " == 1",
        "b'" + "\\xff" * 2000 + "' == b''",
    ],
)
def test_nothing_runs_away(expression: str) -> None:
    try:
        _compile(expression).measure(_device())
        _compile(expression).evaluate(_device())
    except cel.CelError:
        pass


def test_the_cache_keeps_what_compiled_and_forgets_the_oldest() -> None:
    cache = cel.SelectorCache(_GATES, "1.37", limit=2)
    first = cache.get("true")
    assert cache.get("true") is first
    cache.get("false")
    cache.get("1 == 1")
    assert len(cache) == 2
    assert cache.get("true") is not first
    with pytest.raises(cel.CompileError):
        cache.get("1 +")
    assert len(cache) == 2


def test_derived_attributes_may_be_scalars_or_lists() -> None:
    device = _device({"index": {"int": 5}, "model": {"string": "a"}})

    def derive(expression: str) -> Any:
        return cel.derived_value(
            cel.compile_derived_attribute(expression, features=_GATES, version="1.37", stored=True), device
        )

    assert derive(f"{_A}.index / 2") == 2
    assert derive(f'"numa-" + string({_A}.index)') == "numa-5"
    assert derive(f"[{_A}.model]") == ["a"]
    with pytest.raises(cel.CompileError):
        derive("{'a': 1}")
    with pytest.raises(cel.EvaluationError):
        derive(f"dyn({_A})")


def test_a_qualified_name_wins_over_an_unqualified_one() -> None:
    for names in (("model", "gpu.example.com/model"), ("gpu.example.com/model", "model")):
        device = _device({name: {"string": name} for name in names})
        assert _compile(f'{_A}.model == "gpu.example.com/model"').evaluate(device) is True


def test_the_hint_is_1_37_s() -> None:
    assert cel.with_hint("no such key: x", "1.36") == "no such key: x"
    assert "optional chaining" in cel.with_hint("no such key: x", "1.37")
