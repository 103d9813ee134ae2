"""Checks of constants at compile time.

`duration('x')` and `'a'.matches('(')` never have a value, a list literal has elements of one type, and a constant
format string fits its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nodeyard.apiserver.cel.checker import Checked
from nodeyard.apiserver.cel.declarations import call_overload
from nodeyard.apiserver.cel.errors import EvaluationError, InstantiationError, Issue
from nodeyard.apiserver.cel.library.conversions import CONVERSIONS
from nodeyard.apiserver.cel.library.regex import WITH_PATTERN, compiled
from nodeyard.apiserver.cel.library.string_format import Clause, complaint, scan
from nodeyard.apiserver.cel.syntax import Call, ListNode, Literal, MapNode, Node, children, walk
from nodeyard.apiserver.cel.timestamps import from_seconds, parse_duration, parse_timestamp
from nodeyard.apiserver.cel.types import Kind, Type, is_dyn, unwrap_optional
from nodeyard.apiserver.cel.values import MISSING

# Only the list of format arguments may have mixed types.
_MIXED_ALLOWED = "format"
_ACCEPTED = {
    "d": {"int", "uint"},
    "o": {"int", "uint"},
    "b": {"int", "uint", "bool"},
    "x": {"int", "uint", "string", "bytes"},
    "X": {"int", "uint", "string", "bytes"},
    "f": {"double", "string"},
    "e": {"double", "string"},
    "s": {"list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"},
}


def check_literals(checked: Checked) -> list[Issue]:
    issues: list[Issue] = []
    for node in walk(checked.root):
        if isinstance(node, Call):
            issues += _constant_argument(node)
            issues += _format_call(node, checked)
    issues += _mixed_aggregates(checked.root, checked)
    return issues


def _constant_argument(call: Call) -> Iterator[Issue]:
    first = call.arguments[0] if call.arguments else None
    if isinstance(first, Literal) and not _is_valid(call.function, first.value):
        yield Issue(first.offset, f"invalid {call.function} argument")


def _is_valid(function: str, value: object) -> bool:
    if function == "duration":
        return isinstance(value, str) and parse_duration(value) is not None
    if function == "timestamp":
        if isinstance(value, str):
            return parse_timestamp(value) is not None
        return value.__class__ is int and from_seconds(int(str(value))) is not None
    if function == "matches" and isinstance(value, str):
        try:
            compiled(value)
        except EvaluationError:
            return False
    return True


# aggregates


def _mixed_aggregates(node: Node, checked: Checked) -> Iterator[Issue]:
    if isinstance(node, Call) and node.function == _MIXED_ALLOWED:
        return
    if isinstance(node, ListNode):
        yield from _mixed_list(node, checked)
    if isinstance(node, MapNode):
        yield from _mixed_map(node, checked)
    for child in children(node):
        yield from _mixed_aggregates(child, checked)


def _mixed_list(node: ListNode, checked: Checked) -> Iterator[Issue]:
    first: Type | None = None
    for position, element in enumerate(node.elements):
        t = checked.types[element]
        if position in node.optional:
            t = unwrap_optional(t)[0]
        if first is None:
            first = t
        elif t != first:
            yield _mismatch(element, first, t)
            return


def _mixed_map(node: MapNode, checked: Checked) -> Iterator[Issue]:
    keys: Type | None = None
    values: Type | None = None
    for entry in node.entries:
        key, value = checked.types[entry.key], checked.types[entry.value]
        if entry.is_optional:
            value = unwrap_optional(value)[0]
        if keys is None or values is None:
            keys, values = key, value
            continue
        if key != keys:
            yield _mismatch(entry.key, keys, key)
        if value != values:
            yield _mismatch(entry.value, values, value)


def _mismatch(node: Node, wanted: Type, found: Type) -> Issue:
    return Issue(node.offset, f"expected type '{wanted}' but found '{found}'")


# format strings


def _format_call(call: Call, checked: Checked) -> Iterator[Issue]:
    if call.function != "format" or call not in checked.receivers or len(call.arguments) != 1:
        return
    template, arguments = call.target, call.arguments[0]
    if not isinstance(template, Literal) or not isinstance(template.value, str) or not isinstance(arguments, ListNode):
        return
    used = 0
    try:
        for part in scan(template.value, len(arguments.elements)):
            if isinstance(part, Clause):
                used += 1
                fault = _argument_fault(part, arguments.elements[part.argument], checked)
                if fault is not None:
                    yield fault
                    return
    except EvaluationError as error:
        yield Issue(call.offset, str(error))
        return
    if len(arguments.elements) > used:
        count = len(arguments.elements)
        message = f"too many arguments supplied to string.format (expected {used}, got {count})"
        yield Issue(call.offset, message)


def _argument_fault(clause: Clause, argument: Node, checked: Checked) -> Issue | None:
    t = checked.types[argument]
    if not is_dyn(t) and t.name not in _ACCEPTED[clause.verb]:
        return Issue(argument.offset, str(complaint(clause.verb, _runtime_name(t))))
    if clause.verb != "s" or not isinstance(argument, ListNode | MapNode):
        return None
    faults = (_argument_fault(clause, part, checked) for part in children(argument))
    return next((fault for fault in faults if fault is not None), None)


def _runtime_name(t: Type) -> str:
    names = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration", "null": "null_type"}
    return names.get(t.name, t.name) if t.kind is not Kind.OBJECT else t.name


# constant conversions and patterns


def check_constants(checked: Checked) -> None:
    """Raise InstantiationError for a conversion of a constant, or a constant pattern, that fails."""
    try:
        for node in walk(checked.root):
            if isinstance(node, Call):
                _check_pattern(node, checked)
                _constant(node, checked)
    except EvaluationError as error:
        raise InstantiationError(str(error)) from None


def _check_pattern(call: Call, checked: Checked) -> None:
    if call.function in WITH_PATTERN and call.arguments:
        pattern = call.arguments[0 if call in checked.receivers else -1]
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            compiled(pattern.value)


def _constant(node: Node, checked: Checked) -> Any:
    """Return the value of a node of constants and conversions only, else MISSING."""
    if node in checked.constants:
        return checked.constants[node]
    match node:
        case Literal():
            return node.value
        case ListNode(optional=optional) if not optional:
            elements = [_constant(element, checked) for element in node.elements]
            return MISSING if MISSING in elements else elements
        case MapNode():
            parts = [(_constant(entry.key, checked), _constant(entry.value, checked)) for entry in node.entries]
            return MISSING if any(MISSING in part for part in parts) else dict(parts)
        case Call(function=function, arguments=(argument,)) if function in CONVERSIONS and node.target is None:
            value = _constant(argument, checked)
            return MISSING if value is MISSING else call_overload(checked.calls[node], [value])
        case _:
            return MISSING
