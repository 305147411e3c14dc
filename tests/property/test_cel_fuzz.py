"""No text crashes the compiler or runs away, and both evaluators agree on whatever compiles."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubedra import cel
from kubedra.base.features import FeatureGates

_GATES = FeatureGates("1.37", {"DRAListTypeAttributes": True})
_DEVICE = cel.device_input_from_tree(
    "d.example",
    {
        "attributes": {
            "s": {"string": "text"},
            "i": {"int": 3},
            "b": {"bool": True},
            "v": {"version": "1.2.3"},
            "l": {"strings": ["a", "b"]},
        },
        "capacity": {"q": {"value": "1Gi"}},
    },
)
_PIECES = [
    *"()[]{}.,?:\"'+-*/%<>=!&|#`\\ \n",
    *("device", ".attributes", '["d.example"]', ".s", ".i", ".b", ".v", ".l", ".capacity", ".q", ".driver", "==", "!="),
    *("&&", "||", "in", "true", "null", "1", "2u", "3.5", "0x1f", "'x'", 'r"\\d"', "b'y'", ".?s", '[?"s"]', "size("),
    *("has(", ".exists(e, e == 1)", ".map(e, ", ".filter(e, ", "cel.bind(a, ", "quantity(", "semver(", ".matches("),
    *(".replace(", ".format(", ".split(", "duration(", "timestamp(", "optional.of(", ".orValue(", "é", "\ud800", "//"),
]
soup = st.lists(st.sampled_from(_PIECES), max_size=40).map("".join)

scalars = st.sampled_from(
    [
        *(
            "1",
            "0",
            "-3",
            "2u",
            "1.5",
            "'a'",
            "'text'",
            "true",
            "false",
            "null",
            "b'x'",
            "dyn(1)",
            "dyn('a')",
            "[]",
            "{}",
        ),
        *("[1, 2]", "['a']", "{'a': 1}", "device.driver", "optional.none()", "optional.of(1)", "duration('1s')"),
        *(f'device.attributes["d.example"].{name}' for name in ("s", "i", "b", "v", "l", "nope")),
        *('device.capacity["d.example"].q', 'device.attributes["x"].y', 'quantity("1Gi")', 'semver("1.2.3")'),
        *('device.attributes["d.example"].?s', 'device.attributes["d.example"].?nope', "int", "type(1)"),
    ]
)


def _combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(["==", "!=", "<", ">=", "+", "-", "*", "/", "%", "&&", "||", "in"])
    unary = st.sampled_from(
        ["!({})", "-({})", "size({})", "string({})", "int({})", "dyn({})", "type({})", "({}).size()"]
    )
    members = [
        *("({}).orValue(1)", "({}).hasValue()", "({}).value()", "({}).isGreaterThan(quantity('1'))", "({}).major()"),
        *("({}).startsWith('t')", "({}).matches('t.*')", "({}).all(e, e == 1)", "({}).exists(e, e > 1)", "({})[0]"),
        *("({}).map(e, e)", "({}).filter(e, e == 'a')", "({}).exists_one(e, e == 1)", "({}).?a", "has(({}).a)"),
        *(
            "({}).includes(1)",
            "({}).sum()",
            "({}).reverse()",
            "({}).split(',')",
            "({}).join('-')",
            "cel.bind(z, {}, z)",
        ),
        *("({}).transformMap(k, v, v)", "({}).optMap(y, y)", "({}).first()", "({}).distinct()", "({}).flatten()"),
    ]
    return st.one_of(
        st.builds(lambda a, op, b: f"({a} {op} {b})", inner, binary, inner),
        st.builds(lambda form, a: form.format(a), st.one_of(unary, st.sampled_from(members)), inner),
        st.builds(lambda a, b, c: f"({a} ? {b} : {c})", inner, inner, inner),
        st.builds(lambda a, b: f"[{a}, {b}]", inner, inner),
        st.builds(lambda a, b: f"{{{a}: {b}}}", inner, inner),
    )


expressions = st.recursive(scalars, _combine, max_leaves=6)


def _outcome(run: Any) -> Any:
    try:
        return run()
    except cel.EvaluationError as error:
        return error


def _kind(value: Any) -> str:
    return "error" if isinstance(value, cel.EvaluationError) else repr(value)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.text(max_size=60), soup))
def test_any_text_ends_in_a_selector_or_a_compile_error(text: str) -> None:
    try:
        selector = cel.compile_selector(text, features=_GATES, version="1.37", stored=True)
    except cel.CompileError as error:
        assert str(error)
        return
    outcome, cost = selector.measure(_DEVICE)
    assert isinstance(outcome, bool | cel.EvaluationError)
    assert cost is not None and cost >= 0


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(expressions)
def test_both_evaluators_agree(text: str) -> None:
    environment_gates = {"features": _GATES, "version": "1.37", "stored": True}
    wrapped = f"type({text}) == int || true"
    for candidate in (text, f"({text}) == ({text})", wrapped):
        try:
            selector = cel.compile_selector(candidate, **environment_gates)  # type: ignore[arg-type]
        except cel.CompileError:
            continue
        counted, _ = selector.measure(_DEVICE)
        closure = selector.program.closure()
        room = [None] * selector.program.room
        fast = _outcome(lambda closure=closure, room=room: closure([*_DEVICE.frame, *room]))
        if not isinstance(fast, bool | cel.EvaluationError):
            assert isinstance(counted, cel.EvaluationError)
        else:
            assert _kind(counted) == _kind(fast)
        assert selector.estimated_cost >= 0
        assert selector.key(_DEVICE) == selector.key(_DEVICE)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet="ab(){}[]|*+?\\^$.0123456789,:<>P=!é", max_size=30), st.text(max_size=30))
def test_any_pattern_is_matched_or_refused(pattern: str, text: str) -> None:
    quoted = pattern.replace("\\", "\\\\").replace('"', '\\"')
    other = text.encode("unicode_escape").decode().replace('"', "")
    try:
        selector = cel.compile_selector(f'"{other}".matches("{quoted}")', features=_GATES, version="1.37", stored=True)
    except cel.CompileError:
        return
    outcome, _ = selector.measure(_DEVICE)
    assert isinstance(outcome, bool | cel.EvaluationError)


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=10),
        st.one_of(
            st.fixed_dictionaries({"string": st.text(max_size=10)}),
            st.fixed_dictionaries({"int": st.integers(-(2**63), 2**63 - 1)}),
            st.fixed_dictionaries({"version": st.text(max_size=10)}),
            st.fixed_dictionaries({"bools": st.lists(st.booleans(), max_size=3)}),
            st.just({}),
        ),
        max_size=4,
    )
)
def test_any_device_is_looked_at_or_has_a_fault(attributes: dict[str, Any]) -> None:
    device = cel.device_input_from_tree("d.example", {"attributes": attributes})
    selector = cel.compile_selector("size(device.attributes) >= 0", features=_GATES, version="1.37", stored=True)
    outcome, _ = selector.measure(device)
    assert outcome is True or isinstance(outcome, cel.EvaluationError)
