"""Programs: a checked tree compiled to Python closures.

Each node becomes a function of a frame: a list with the budget in its first slot and the variables in the others. If
the types are known at compile time, the plain Python operation is used; otherwise the values are inspected. An error is
an exception, unless the language lets a definite answer absorb it: `&&`, `||` and the quantifiers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from nodeyard.apiserver.cel.access import (
    has_field,
    index,
    optional_index,
    optional_select,
    select,
    select_from_optional,
    whole,
)
from nodeyard.apiserver.cel.checker import Checked
from nodeyard.apiserver.cel.comprehensions import Evaluator, Frame, build_fold
from nodeyard.apiserver.cel.cost import Budget, Cost, CostlyError, call_cost
from nodeyard.apiserver.cel.declarations import Overload, call_overload, mismatch
from nodeyard.apiserver.cel.errors import CostExceeded, EvaluationError, no_such_key, no_such_overload
from nodeyard.apiserver.cel.syntax import (
    Call,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    qualified_name,
    walk,
)
from nodeyard.apiserver.cel.types import BOOL, INT, STRING, Kind, Type, is_dyn_or_error, unwrap_optional
from nodeyard.apiserver.cel.values import MISSING, NONE, Optional

_Complaint: TypeAlias = Callable[..., EvaluationError]
"""Makes the error of values that a function does not accept."""
_BROKEN_PROMISE = (TypeError, AttributeError)

_COMPARABLE = (STRING, INT)
_PLAIN_OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], tuple[Type, ...]]] = {
    "_==_": (operator.eq, (STRING, INT, BOOL)),
    "_!=_": (operator.ne, (STRING, INT, BOOL)),
    "_<_": (operator.lt, _COMPARABLE),
    "_<=_": (operator.le, _COMPARABLE),
    "_>_": (operator.gt, _COMPARABLE),
    "_>=_": (operator.ge, _COMPARABLE),
}


class Program:
    """A compiled expression."""

    def __init__(self, checked: Checked) -> None:
        builder = _Builder(checked)
        self._evaluate = builder.build(checked.root)
        self._slots = builder.variables
        self._size = builder.size
        self._cost = sum(1 for _ in walk(checked.root))

    def evaluate(self, variables: Mapping[str, Any], budget: Budget | None = None) -> Any:
        """Evaluate, paid from the budget. Raises EvaluationError, or CostlyError if a trial budget is spent."""
        budget = budget or Budget()
        frame: Frame = [budget] + [None] * self._size
        for name, slot in self._slots.items():
            if name not in variables:
                raise EvaluationError(f"no such attribute(s): {name}")
            frame[slot] = variables[name]
        is_outermost = budget.begin()
        try:
            budget.spend(self._cost)
            return self._evaluate(frame)
        except CostExceeded as error:
            if budget.is_trial:
                raise CostlyError from None
            raise EvaluationError(str(error)) from None
        finally:
            if is_outermost:
                budget.end()


class _Builder:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self.size = 0
        self.variables = {name: self.new_slot() for name in sorted(checked.variables)}
        self._locals: list[dict[str, int]] = [self.variables]

    def new_slot(self) -> int:
        self.size += 1
        return self.size

    def build(self, node: Node) -> Evaluator:
        constant = self._checked.constants.get(node)
        if constant is not None:
            return lambda frame: constant
        match node:
            case Literal():
                value = node.value
                return lambda frame: value
            case Ident():
                return self._variable(node.name.removeprefix("."))
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case Fold():
                return build_fold(node, self)
            case _:
                raise TypeError(f"no program for {node!r}")

    def build_within(self, node: Node, names: dict[str, int]) -> Evaluator:
        """Build a node with additional variables."""
        self._locals.append(names)
        evaluator = self.build(node)
        self._locals.pop()
        return evaluator

    def _variable(self, name: str) -> Evaluator:
        slot = next(names[name] for names in reversed(self._locals) if name in names)
        return operator.itemgetter(slot)

    # fields

    def _select(self, node: Select) -> Evaluator:
        name = qualified_name(node)
        if name in self._checked.variables:
            return self._variable(name)
        operand = self.build(node.operand)
        field = node.field
        if node.is_test:
            return lambda frame: has_field(operand(frame), field)
        if unwrap_optional(self._type(node.operand))[1]:
            return lambda frame: select_from_optional(operand(frame), field)
        if self._type(node) == INT:
            return lambda frame: whole(select(operand(frame), field))

        def evaluate(frame: Frame) -> Any:
            value = operand(frame)
            if value.__class__ is dict:
                try:
                    return value[field]
                except KeyError:
                    raise no_such_key(field) from None
            return select(value, field)

        return evaluate

    # calls

    def _call(self, node: Call) -> Evaluator:
        special = _SPECIAL.get(node.function)
        if special is not None and (node.target is None or node in self._checked.receivers):
            parts = (node.target, *node.arguments) if node.target is not None else node.arguments
            return special(*(self.build(part) for part in parts))
        arguments = list(node.arguments)
        if node in self._checked.receivers and node.target is not None:
            arguments.insert(0, node.target)
        evaluators = [self.build(argument) for argument in arguments]
        types = [self._type(argument) for argument in arguments]
        plain = _PLAIN_OPERATORS.get(node.function)
        if plain is not None and types[0] == types[1] and types[0] in plain[1]:
            return _apply(plain[0], evaluators, self._complaint(node))
        implementation = self._implementation(node, types)
        cost = call_cost(self._checked.calls[node][0].name, types)
        if cost is None:
            return _apply(implementation, evaluators, self._complaint(node))
        return _charge(implementation, evaluators, self._complaint(node), cost)

    def _implementation(self, node: Call, types: list[Type]) -> Callable[..., Any]:
        overloads = self._checked.calls[node]
        first = overloads[0]
        if first.is_total or (len(overloads) == 1 and not any(map(_mentions_dyn, types))):
            return first.implementation
        return _dispatch(overloads)

    def _complaint(self, node: Call) -> _Complaint:
        overload = self._checked.calls[node][0]
        if overload.is_total:
            return lambda *_: no_such_overload(overload.name)
        return lambda *values: mismatch(overload.name, values)

    def _type(self, node: Node) -> Type:
        return self._checked.types[node]

    # aggregates

    def _list(self, node: ListNode) -> Evaluator:
        if all(isinstance(element, Literal) for element in node.elements):
            constant = [element.value for element in node.elements if isinstance(element, Literal)]
            return lambda frame: constant
        elements = [self.build(element) for element in node.elements]
        if not node.optional:
            return lambda frame: [element(frame) for element in elements]
        optional = node.optional

        def evaluate(frame: Frame) -> list[Any]:
            values: list[Any] = []
            for position, element in enumerate(elements):
                value = element(frame)
                if position in optional:
                    if value.__class__ is not Optional:
                        raise EvaluationError("cannot initialize optional list element from non-optional value")
                    if not value.has_value:
                        continue
                    value = value.value
                values.append(value)
            return values

        return evaluate

    def _map(self, node: MapNode) -> Evaluator:
        entries = [(self.build(e.key), self.build(e.value), e.is_optional) for e in node.entries]

        def evaluate(frame: Frame) -> dict[Any, Any]:
            result: dict[Any, Any] = {}
            for key, value, is_optional in entries:
                name, content = key(frame), value(frame)
                if is_optional:
                    content = _optional_entry(name, content)
                if content is not MISSING:
                    result[name] = content
            return result

        return evaluate


def _optional_entry(name: Any, content: Any) -> Any:
    if content.__class__ is not Optional:
        raise EvaluationError(f"cannot initialize optional entry '{name}' from non-optional value")
    return content.value


def _mentions_dyn(t: Type) -> bool:
    return is_dyn_or_error(t) or t.kind is Kind.NULL or any(map(_mentions_dyn, t.parameters))


def _dispatch(overloads: tuple[Overload, ...]) -> Callable[..., Any]:
    """Choose the overload at run time by the values."""
    return lambda *values: call_overload(overloads, values)


def _apply(implementation: Callable[..., Any], arguments: list[Evaluator], complain: _Complaint) -> Evaluator:
    """Build a call of an implementation that relies on the checked types.

    A null instead of a string or number (an item of a list of nullable ones) raises a TypeError or AttributeError,
    which becomes the error of the call.
    """
    if len(arguments) == 1:
        only = arguments[0]

        def call_one(frame: Frame) -> Any:
            value = only(frame)
            try:
                return implementation(value)
            except _BROKEN_PROMISE:
                raise complain(value) from None

        return call_one
    if len(arguments) == 2:
        left, right = arguments

        def call_two(frame: Frame) -> Any:
            first, second = left(frame), right(frame)
            try:
                return implementation(first, second)
            except _BROKEN_PROMISE:
                raise complain(first, second) from None

        return call_two

    def call_any(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        try:
            return implementation(*values)
        except _BROKEN_PROMISE:
            raise complain(*values) from None

    return call_any


def _charge(
    implementation: Callable[..., Any], arguments: list[Evaluator], complain: _Complaint, cost: Cost
) -> Evaluator:
    """Build a call whose cost depends on its arguments."""

    def call(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        frame[0].spend(cost(values))
        try:
            return implementation(*values)
        except _BROKEN_PROMISE:
            raise complain(*values) from None

    return call


# Forms that do not evaluate all their arguments, or that absorb errors.


def _and(left: Evaluator, right: Evaluator) -> Evaluator:
    return _logical(left, right, decisive=False)


def _or(left: Evaluator, right: Evaluator) -> Evaluator:
    return _logical(left, right, decisive=True)


def _logical(left: Evaluator, right: Evaluator, *, decisive: bool) -> Evaluator:
    """The decisive value of either side wins, also over an error of the other."""

    def evaluate(frame: Frame) -> bool:
        try:
            first = left(frame)
            if first is decisive:
                return bool(first)
            if first.__class__ is not bool:
                raise no_such_overload()
        except EvaluationError as error:
            return _despite(error, right, frame)
        second = right(frame)
        if second.__class__ is not bool:
            raise no_such_overload()
        return bool(second)

    def _despite(error: EvaluationError, right: Evaluator, frame: Frame) -> bool:
        try:
            second = right(frame)
        except EvaluationError:
            raise error from None
        if second is decisive:
            return bool(second)
        raise error

    return evaluate


def _conditional(condition: Evaluator, then: Evaluator, otherwise: Evaluator) -> Evaluator:
    def evaluate(frame: Frame) -> Any:
        chosen = condition(frame)
        if chosen is True:
            return then(frame)
        if chosen is False:
            return otherwise(frame)
        raise no_such_overload()

    return evaluate


def _first_optional(left: Evaluator, right: Evaluator) -> Evaluator:
    def evaluate(frame: Frame) -> Any:
        value = left(frame)
        return right(frame) if value is NONE or (value.__class__ is Optional and not value.has_value) else value

    return evaluate


def _value_or(left: Evaluator, right: Evaluator) -> Evaluator:
    def evaluate(frame: Frame) -> Any:
        value = left(frame)
        if value.__class__ is not Optional:
            return value
        return value.value if value.has_value else right(frame)

    return evaluate


def _strict(implementation: Callable[[Any, Any], Any]) -> Callable[..., Evaluator]:
    def build(left: Evaluator, right: Evaluator) -> Evaluator:
        return lambda frame: implementation(left(frame), right(frame))

    return build


_SPECIAL: dict[str, Callable[..., Evaluator]] = {
    "_&&_": _and,
    "_||_": _or,
    "_?_:_": _conditional,
    "or": _first_optional,
    "orValue": _value_or,
    "_?._": _strict(optional_select),
    "_[?_]": _strict(optional_index),
    "_[_]": _strict(index),
}
