"""Macros: `has`, `all`, `exists`, `map`, `filter` and others, expanded while parsing.

`has(a.b)` tests for a field. Most others are loops with one variable, or with two: index and item, or key and value.
`optMap` and `sortBy` bind a value to a name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nodeyard.apiserver.cel.syntax import Call, Fold, Ident, ListNode, Literal, MapNode, Node, Select

ACCUMULATOR = "@result"
MAP_INSERT = "cel.@mapInsert"
SORT_BY_KEYS = "@sortByAssociatedKeys"
_FORMER_ACCUMULATOR = "__result__"
_SORT_INPUT = "@__sortBy_input__"
_UNUSED = "#unused"


class MacroError(Exception):
    """A macro with arguments that it cannot expand."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def expand(call: Call) -> Node:
    """Return the expansion of a macro; any other call is returned as it is."""
    if call.target is None:
        return _has(call) if call.function == "has" and len(call.arguments) == 1 else call
    macro = _MACROS.get((call.function, len(call.arguments)))
    return macro(call, call.target) if macro else call


def _has(call: Call) -> Node:
    argument = call.arguments[0]
    if not isinstance(argument, Select):
        raise MacroError(argument.offset, "invalid argument to has() macro")
    return Select(call.offset, argument.operand, argument.field, is_test=True)


# comprehensions


@dataclass(frozen=True, slots=True)
class _Loop:
    """The parts of a comprehension: position, range and names of the iteration variables."""

    at: int
    items: Node
    names: tuple[str, ...]

    @property
    def accumulated(self) -> Ident:
        return Ident(self.at, ACCUMULATOR)

    def call(self, function: str, *arguments: Node) -> Call:
        return Call(self.at, function, arguments)

    def fold(self, initial: Node, step: Node, condition: Node | None = None, result: Node | None = None) -> Fold:
        return Fold(
            self.at,
            items=self.items,
            variable=self.names[0],
            second_variable=self.names[1] if len(self.names) == 2 else "",
            accumulator=ACCUMULATOR,
            initial=initial,
            condition=condition or Literal(self.at, True),
            step=step,
            result=result or self.accumulated,
        )

    def collect(self, initial: Node, step: Node, condition: Node | None) -> Fold:
        """Return the fold over all items, or over those for which the condition is true."""
        if condition is not None:
            step = self.call("_?_:_", condition, step, self.accumulated)
        return self.fold(initial, step)


def _all(loop: _Loop, predicate: Node, *_: Node) -> Node:
    going_on = loop.call("@not_strictly_false", loop.accumulated)
    return loop.fold(Literal(loop.at, True), loop.call("_&&_", loop.accumulated, predicate), going_on)


def _exists(loop: _Loop, predicate: Node, *_: Node) -> Node:
    going_on = loop.call("@not_strictly_false", loop.call("!_", loop.accumulated))
    return loop.fold(Literal(loop.at, False), loop.call("_||_", loop.accumulated, predicate), going_on)


def _exists_one(loop: _Loop, predicate: Node, *_: Node) -> Node:
    one = Literal(loop.at, 1)
    step = loop.call("_?_:_", predicate, loop.call("_+_", loop.accumulated, one), loop.accumulated)
    return loop.fold(Literal(loop.at, 0), step, result=loop.call("_==_", loop.accumulated, one))


def _map(loop: _Loop, *parts: Node) -> Node:
    """With two arguments the first is a filter, as in the transformations below."""
    return _append(loop, parts[-1], parts[0] if len(parts) == 2 else None)


def _filter(loop: _Loop, predicate: Node, *_: Node) -> Node:
    return _append(loop, Ident(loop.at, loop.names[0]), predicate)


def _append(loop: _Loop, element: Node, condition: Node | None) -> Node:
    step = loop.call("_+_", loop.accumulated, ListNode(loop.at, (element,)))
    return loop.collect(ListNode(loop.at, ()), step, condition)


def _transform_map(loop: _Loop, *parts: Node) -> Node:
    step = loop.call(MAP_INSERT, loop.accumulated, Ident(loop.at, loop.names[0]), parts[-1])
    return loop.collect(MapNode(loop.at, ()), step, parts[0] if len(parts) == 2 else None)


def _transform_map_entry(loop: _Loop, *parts: Node) -> Node:
    step = loop.call(MAP_INSERT, loop.accumulated, parts[-1])
    return loop.collect(MapNode(loop.at, ()), step, parts[0] if len(parts) == 2 else None)


Macro = Callable[[Call, Node], Node]


def _looping(expander: Callable[..., Node], variables: int, complaint: str) -> Macro:
    """Declare a macro whose first arguments name the variables."""

    def macro(call: Call, target: Node) -> Node:
        names = tuple(_name(argument, complaint) for argument in call.arguments[:variables])
        if len(set(names)) < len(names):
            raise MacroError(call.arguments[1].offset, f"duplicate variable name: {names[0]}")
        return expander(_Loop(call.offset, target, names), *call.arguments[variables:])

    return macro


def _name(argument: Node, complaint: str) -> str:
    if not isinstance(argument, Ident):
        raise MacroError(argument.offset, complaint)
    if argument.name in (ACCUMULATOR, _FORMER_ACCUMULATOR):
        raise MacroError(argument.offset, "iteration variable overwrites accumulator variable")
    return argument.name


# bindings


def _binding(at: int, name: str, value: Node, result: Node) -> Fold:
    """Bind a value to a name in `result`: a fold over nothing."""
    return Fold(
        at,
        items=ListNode(at, ()),
        variable=_UNUSED,
        second_variable="",
        accumulator=name,
        initial=value,
        condition=Literal(at, False),
        step=Ident(at, name),
        result=result,
    )


def _opt_map(call: Call, target: Node) -> Node:
    return _opt_flat_map(call, target, wrap=lambda at, value: Call(at, "optional.of", (value,)))


def _opt_flat_map(call: Call, target: Node, wrap: Callable[[int, Node], Node] | None = None) -> Node:
    """Expand `optMap` and `optFlatMap`: the expression if the optional has a value, else none."""
    at = call.offset
    variable, body = call.arguments
    if not isinstance(variable, Ident):
        raise MacroError(variable.offset, f"{call.function}() variable name must be a simple identifier")
    mapped: Node = _binding(at, variable.name, Call(at, "value", (), target), body)
    then = wrap(at, mapped) if wrap else mapped
    return Call(at, "_?_:_", (Call(at, "hasValue", (), target), then, Call(at, "optional.none", ())))


def _sort_by(call: Call, target: Node) -> Node:
    """Expand `sortBy`: the list is mapped to its keys and sorted by them."""
    at = call.offset
    variable, key = call.arguments
    loop = _Loop(at, Ident(at, _SORT_INPUT), (_name(variable, "argument is not an identifier"),))
    return _binding(at, _SORT_INPUT, target, Call(at, SORT_BY_KEYS, (_map(loop, key),), Ident(at, _SORT_INPUT)))


_SIMPLE_NAME = "argument must be a simple name"
_IDENTIFIER = "argument is not an identifier"

_MACROS: dict[tuple[str, int], Macro] = {
    ("all", 2): _looping(_all, 1, _SIMPLE_NAME),
    ("all", 3): _looping(_all, 2, _SIMPLE_NAME),
    ("exists", 2): _looping(_exists, 1, _SIMPLE_NAME),
    ("exists", 3): _looping(_exists, 2, _SIMPLE_NAME),
    ("exists_one", 2): _looping(_exists_one, 1, _SIMPLE_NAME),
    ("exists_one", 3): _looping(_exists_one, 2, _SIMPLE_NAME),
    ("existsOne", 3): _looping(_exists_one, 2, _SIMPLE_NAME),
    ("map", 2): _looping(_map, 1, _IDENTIFIER),
    ("map", 3): _looping(_map, 1, _IDENTIFIER),
    ("filter", 2): _looping(_filter, 1, _IDENTIFIER),
    ("transformList", 3): _looping(_map, 2, _SIMPLE_NAME),
    ("transformList", 4): _looping(_map, 2, _SIMPLE_NAME),
    ("transformMap", 3): _looping(_transform_map, 2, _SIMPLE_NAME),
    ("transformMap", 4): _looping(_transform_map, 2, _SIMPLE_NAME),
    ("transformMapEntry", 3): _looping(_transform_map_entry, 2, _SIMPLE_NAME),
    ("transformMapEntry", 4): _looping(_transform_map_entry, 2, _SIMPLE_NAME),
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
    ("sortBy", 2): _sort_by,
}
