"""Random expressions of the core language, evaluated by two implementations: ours and the engine's."""

from __future__ import annotations

import math
from typing import Any

from cel_expr_python import cel
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeyard.apiserver.cel import EvaluationError, Expression
from nodeyard.apiserver.cel.types import BOOL, DOUBLE, INT, STRING, list_of

VARIABLES = {"b": True, "i": 7, "d": 2.5, "s": "caf\u00e9", "l": [3, 1, 2]}
TYPES = {"b": BOOL, "i": INT, "d": DOUBLE, "s": STRING, "l": list_of(INT)}
ENGINE = cel.NewEnv(
    variables={
        "b": cel.Type.BOOL,
        "i": cel.Type.INT,
        "d": cel.Type.DOUBLE,
        "s": cel.Type.STRING,
        "l": cel.Type.List(cel.Type.INT),
    }
)


def _binary(operators: list[str], operand: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda a, o, b: f"({a} {o} {b})", operand, st.sampled_from(operators), operand)


INTS = st.recursive(
    st.one_of(st.integers(-9, 9).map(lambda n: f"({n})"), st.sampled_from(["i", "size(s)", "l[0]", "l[i]", "int(d)"])),
    lambda inner: st.one_of(_binary(["+", "-", "*", "/", "%"], inner), inner.map(lambda e: f"(-{e})")),
    max_leaves=5,
)
TEXTS = st.recursive(
    st.sampled_from(["s", "'a'", "''", "string(i)", "'x\\ny'"]),
    lambda inner: _binary(["+"], inner),
    max_leaves=3,
)
COMPARISONS = st.one_of(
    _binary(["<", "<=", ">", ">=", "==", "!="], INTS),
    _binary(["<", "==", "!="], TEXTS),
    st.builds(lambda a, b: f"{a}.contains({b})", TEXTS, TEXTS),
    INTS.map(lambda e: f"({e} in l)"),
    INTS.map(lambda e: f"l.all(x, x > {e})"),
    INTS.map(lambda e: f"l.exists(x, x / {e} == 1)"),
    INTS.map(lambda e: f"l.exists_one(x, x == {e})"),
    INTS.map(lambda e: f"(l.map(x, x * {e}).size() == l.filter(x, x < {e}).size())"),
    st.just("b"),
)
BOOLS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        _binary(["&&", "||"], inner),
        inner.map(lambda e: f"!{e}"),
        st.builds(lambda a, b, c: f"({a} ? {b} : {c})", inner, inner, inner),
    ),
    max_leaves=5,
)


def _engine_value(source: str) -> Any:
    value = ENGINE.compile(source).eval(data=VARIABLES)
    return "error" if value.type() == cel.Type.ERROR else value.plain_value()


def _our_value(source: str) -> Any:
    try:
        return Expression.compile(source, TYPES).evaluate(VARIABLES)
    except EvaluationError:
        return "error"


@settings(max_examples=300, deadline=None)
@given(st.one_of(BOOLS, INTS, TEXTS))
def test_both_come_to_the_same_value_or_both_fail(source: str) -> None:
    ours, engine = _our_value(source), _engine_value(source)

    assert ours.__class__ is engine.__class__, source
    assert ours == engine or (isinstance(ours, float) and math.isclose(ours, engine)), source
