"""Expressions of policies and match conditions: types, variables, and lazy evaluation."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.cel import CompileError, Composition, EvaluationError, Expression
from nodeyard.apiserver.cel.admission import NAMESPACE, REQUEST
from nodeyard.apiserver.cel.cost import Budget
from nodeyard.apiserver.cel.declarations import Functions, member
from nodeyard.apiserver.cel.library import FUNCTIONS
from nodeyard.apiserver.cel.types import BOOL, DYN, INT, NULL, STRING, list_of, parse_type
from nodeyard.apiserver.cel.values import Opaque

POD = {"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {"containers": [{"image": "a:1"}, {"image": "b"}]}}


def evaluate(source: str, **bindings: Any) -> Any:
    return Expression.compile(source, bindings.keys()).evaluate(bindings)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("object.metadata.labels['app'] == 'web'", True),
        ("object.spec.containers.all(c, c.image.contains(':'))", False),
        ("object.metadata.?annotations['x'].orValue('none')", "none"),
        ("has(object.spec.nodeName)", False),
        ("object.spec.containers.map(c, c.image)", ["a:1", "b"]),
        ("oldObject == null", True),
        ("size(object.spec.containers) + 1", 3),
    ],
)
def test_json_is_seen_as_it_is(source: str, value: Any) -> None:
    assert evaluate(source, object=POD, oldObject=None) == value


def test_a_null_field_of_plain_json_is_there() -> None:
    assert evaluate("has(object.a) && object.a == null", object={"a": None}) is True


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("object.spec.nodeName == ''", "no such key: nodeName"),
        ("object.spec.containers[2].image == ''", "index out of bounds: 2"),
        ("object.metadata.name > 3", "no such overload"),
        ("oldObject.metadata.name == ''", "no such key: metadata"),
    ],
)
def test_missing_values_are_errors(source: str, error: str) -> None:
    with pytest.raises(EvaluationError, match=f"^{error}$"):
        evaluate(source, object=POD, oldObject=None)


@pytest.mark.parametrize(
    ("source", "results", "error"),
    [
        ("1", [BOOL], "must evaluate to bool but got int"),
        ("object", [BOOL], "must evaluate to bool but got dyn"),
        ("1", [STRING, NULL], r"must evaluate to one of \[string null_type\] but got int"),
        ("duration('1s')", [BOOL], "must evaluate to bool but got google.protobuf.Duration"),
        ("nope", [BOOL], "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope'"),
        ("int('x')", [INT], "program instantiation failed: type conversion error from 'string' to 'int'"),
    ],
)
def test_mismatched_types_are_refused(source: str, results: list[Any], error: str) -> None:
    with pytest.raises(CompileError, match=f"^{error}"):
        Expression.compile(source, ["object"], results)


def test_the_type_of_the_result_is_known() -> None:
    assert Expression.compile("[1, 2]", []).result == list_of(INT)


def test_a_variable_may_have_a_dot_in_its_name() -> None:
    expression = Expression.compile("a.b + a.c", {"a.b": INT, "a": DYN})

    assert expression.evaluate({"a.b": 1, "a": {"c": 2}}) == 3


def test_a_library_of_ones_own_can_be_added() -> None:
    class Box(Opaque):
        type_name = "test.Box"
        content = 7

    opened = member("open", "test.Box -> int", lambda box: box.content)
    functions = Functions(FUNCTIONS, [opened])

    expression = Expression.compile("box.open() == 7", {"box": parse_type("test.Box")}, [BOOL], functions)

    assert expression.evaluate({"box": Box()}) is True


@pytest.mark.parametrize(
    "source", ["request.userInfo.groups[0] == 'dev'", "request.namespace == 'x'", "request.dryRun"]
)
def test_a_request_has_the_fields_of_a_request(source: str) -> None:
    request = {"userInfo": {"groups": ["dev"]}, "namespace": "x", "dryRun": True}

    assert Expression.compile(source, {"request": REQUEST}, [BOOL]).evaluate({"request": request}) is True


@pytest.mark.parametrize("source", ["request.user.name == ''", "namespaceObject.metadata.ownerReferences.size() == 0"])
def test_fields_that_nobody_has_are_refused(source: str) -> None:
    with pytest.raises(CompileError, match="undefined field"):
        Expression.compile(source, {"request": REQUEST, "namespaceObject": NAMESPACE}, [BOOL])


def composed(**sources: str) -> Composition:
    composition = Composition({"object": DYN})
    for name, source in sources.items():
        composition.declare(name, source)
    return composition


def test_variables_build_on_each_other() -> None:
    composition = composed(names="object.spec.containers.map(c, c.image)", count="variables.names.size()")
    expression = Expression.compile("variables.count == 2 && variables.names[0] == 'a:1'", composition.scope, [BOOL])

    assert expression.evaluate(composition.bind({"object": POD}, Budget())) is True


def test_an_unused_variable_is_not_evaluated() -> None:
    composition = composed(broken="object.nope", fine="1")
    expression = Expression.compile("variables.fine == 1", composition.scope, [BOOL])

    assert expression.evaluate(composition.bind({"object": POD}, Budget())) is True


def test_a_variable_that_fails_fails_each_time_it_is_asked_for() -> None:
    composition = composed(broken="object.nope")
    expression = Expression.compile("variables.broken == 1", composition.scope, [BOOL])
    bindings = composition.bind({"object": POD}, Budget())

    for _ in range(2):
        with pytest.raises(
            EvaluationError, match='^composited variable "broken" fails to evaluate: no such key: nope$'
        ):
            expression.evaluate(bindings)


def test_a_variable_may_be_absorbed_like_any_error() -> None:
    composition = composed(broken="object.nope")
    expression = Expression.compile("variables.broken == 1 || true", composition.scope, [BOOL])

    assert expression.evaluate(composition.bind({"object": POD}, Budget())) is True


def test_a_variable_knows_only_those_before_it() -> None:
    with pytest.raises(CompileError, match="undefined field 'later'"):
        composed(early="variables.later", later="1")


def test_a_variable_is_worked_out_once() -> None:
    calls: list[int] = []
    count = member("count", "test.Box -> int", lambda box: calls.append(1) or 5)
    functions = Functions(FUNCTIONS, [count])

    class Box(Opaque):
        type_name = "test.Box"

    composition = Composition({"box": parse_type("test.Box")}, functions)
    composition.declare("n", "box.count()")
    expression = Expression.compile("variables.n + variables.n == 10", composition.scope, [BOOL], functions)

    assert expression.evaluate(composition.bind({"box": Box()}, Budget())) is True
    assert calls == [1]


def test_to_later_expressions_a_library_value_is_anything() -> None:
    composition = composed(limit="quantity('1Gi')")
    expression = Expression.compile("variables.limit.isGreaterThan(quantity('1G'))", composition.scope, [BOOL])

    assert expression.evaluate(composition.bind({"object": POD}, Budget())) is True
