"""The `variables` of a policy: named expressions for later ones, each evaluated on first use.

The type of `variables` grows while they are compiled in order, so an expression sees only the variables before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nodeyard.apiserver.cel.cost import Budget
from nodeyard.apiserver.cel.declarations import Functions
from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.apiserver.cel.expressions import Expression
from nodeyard.apiserver.cel.library import FUNCTIONS
from nodeyard.apiserver.cel.types import DYN, Kind, Type, object_type
from nodeyard.apiserver.cel.values import MISSING, ObjectValue
from nodeyard.kube.goformat import quote

NAME = "variables"


class _Fields:
    def __init__(self) -> None:
        self.types: dict[str, Type] = {}

    def find(self, name: str) -> Type | None:
        return self.types.get(name)


class Composition:
    """The variables of a policy, declared one after the other."""

    def __init__(self, scope: Mapping[str, Type], functions: Functions = FUNCTIONS) -> None:
        self._fields = _Fields()
        self._functions = functions
        self._expressions: dict[str, Expression] = {}
        self.scope: Mapping[str, Type] = {**scope, NAME: object_type("kubernetes.variables", self._fields)}
        """The declarations for expressions that use the variables."""

    def declare(self, name: str, source: str) -> Expression:
        """Declare a variable. Raises CompileError."""
        expression = Expression.compile(source, self.scope, functions=self._functions)
        self._expressions[name] = expression
        self._fields.types[name] = _field_type(expression.result)
        return expression

    def bind(self, bindings: Mapping[str, Any], budget: Budget) -> dict[str, Any]:
        """Add `variables`, which are paid from the budget, to the bindings of one request."""
        bound = dict(bindings)
        bound[NAME] = ObjectValue({}, _Lazy(self._expressions, bound, budget))
        return bound


def _field_type(t: Type) -> Type:
    """Return the declared type of a variable; objects and library types are dynamic."""
    if t.kind in (Kind.LIST, Kind.MAP):
        return Type(t.kind, t.name, tuple(map(_field_type, t.parameters)))
    return t if t.kind in (Kind.SCALAR, Kind.NULL) else DYN


class _Lazy:
    """The shape of `variables`: each field is the cached value of its expression."""

    def __init__(self, expressions: Mapping[str, Expression], bindings: Mapping[str, Any], budget: Budget) -> None:
        self._expressions = expressions
        self._bindings = bindings
        self._budget = budget
        self._values: dict[str, Any] = {}
        self._faults: dict[str, EvaluationError] = {}

    def field(self, raw: dict[str, Any], name: str) -> Any:
        if name in self._faults:
            raise self._faults[name]
        if name not in self._values:
            self._values[name] = self._evaluate(name)
        return self._values[name]

    def _evaluate(self, name: str) -> Any:
        expression = self._expressions.get(name)
        if expression is None:
            return MISSING
        try:
            return expression.evaluate(self._bindings, self._budget)
        except EvaluationError as error:
            fault = EvaluationError(f"composited variable {quote(name)} fails to evaluate: {error}")
            self._faults[name] = fault
            raise fault from None

    def names(self, raw: dict[str, Any]) -> Iterator[str]:
        return iter(self._expressions)

    def undeclared(self, raw: dict[str, Any]) -> Iterator[str]:
        return iter(())
