"""The type checker: declared names, known fields, and an overload for every call.

Rules and errors are those of the API server's checker. The types of nodes and the possible overloads of calls are the
input of the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from nodeyard.apiserver.cel.declarations import Function, Functions, Overload
from nodeyard.apiserver.cel.errors import Issue
from nodeyard.apiserver.cel.syntax import (
    Call,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    Struct,
    qualified_name,
)
from nodeyard.apiserver.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Kind,
    Type,
    is_dyn,
    is_dyn_or_error,
    list_of,
    map_of,
    optional_of,
    parameter,
    type_of,
    unwrap_optional,
)
from nodeyard.apiserver.cel.unification import Substitution, more_general
from nodeyard.apiserver.cel.values import TypeValue, UInt

_LITERALS: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}
_OPTIONAL_SELECT = "_?._"
_LOGICAL = {"_&&_", "_||_"}


@dataclass
class Scope:
    """The declarations that an expression may use."""

    variables: Mapping[str, Type]
    functions: Functions
    type_names: Mapping[str, Type]
    """Type names in expressions: `int`, `google.protobuf.Duration`."""


@dataclass
class Checked:
    """A checked tree."""

    root: Node
    types: dict[Node, Type] = field(default_factory=dict)
    calls: dict[Call, tuple[Overload, ...]] = field(default_factory=dict)
    receivers: set[Call] = field(default_factory=set)
    """Calls whose target is a receiver, not part of the function's name."""
    constants: dict[Node, TypeValue] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)
    """The used variables; a name may have dots, as `authorizer.requestResource`."""

    @property
    def result(self) -> Type:
        return self.types[self.root]


def check(root: Node, scope: Scope) -> tuple[Checked, list[Issue]]:
    checker = _Checker(root, scope)
    checker.visit(root)
    checked = checker.checked
    checked.types = {node: checker.known.apply(t, unbound_is_dyn=True) for node, t in checked.types.items()}
    return checked, checker.issues


class _Checker:
    def __init__(self, root: Node, scope: Scope) -> None:
        self.checked = Checked(root)
        self.issues: list[Issue] = []
        self.known = Substitution()
        self._scope = scope
        self._locals: list[dict[str, Type]] = []
        self._fresh_parameters = 0

    def visit(self, node: Node) -> Type:
        t = self._type(node)
        self.checked.types[node] = t
        return t

    def _type(self, node: Node) -> Type:
        match node:
            case Literal():
                return _LITERALS[node.value.__class__]
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case Fold():
                return self._fold(node)
            case Struct():
                return self._undeclared(node, node.name)

    # names and fields

    def _ident(self, node: Ident) -> Type:
        found = self._lookup(node, node.name.removeprefix("."))
        return found if found is not None else self._undeclared(node, node.name)

    def _lookup(self, node: Node, name: str) -> Type | None:
        for local in reversed(self._locals):
            if name in local:
                return local[name]
        if name in self._scope.variables:
            self.checked.variables.add(name)
            return self._scope.variables[name]
        named = self._scope.type_names.get(name)
        if named is None:
            return None
        self.checked.constants[node] = TypeValue(name)
        return type_of(named)

    def _undeclared(self, node: Node, name: str) -> Type:
        return self._fault(node, f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: Select) -> Type:
        name = qualified_name(node)
        if name is not None:
            named = self._lookup(node, name)
            if named is not None:
                return named
        t = self._field(node, node.operand, node.field, optional=False)
        return BOOL if node.is_test else t

    def _field(self, node: Node, operand: Node, field_name: str, *, optional: bool) -> Type:
        target, was_optional = unwrap_optional(self.known.apply(self.visit(operand)))
        result = self.known.apply(self._field_type(node, target, field_name))
        return optional_of(result) if was_optional or optional else result

    def _field_type(self, node: Node, target: Type, field_name: str) -> Type:
        if target.kind is Kind.MAP:
            return target.parameters[1]
        if target.kind is Kind.OBJECT:
            found = target.fields.find(field_name)
            return found if found is not None else self._fault(node, f"undefined field '{field_name}'")
        if target.kind is Kind.PARAMETER:
            self.known.assignable([DYN], [target])
        elif not is_dyn_or_error(target):
            self._fault(node, f"type '{target}' does not support field selection")
        return DYN

    # calls

    def _call(self, node: Call) -> Type:
        if node.function == _OPTIONAL_SELECT:
            operand, name = node.arguments
            return self._field(node, operand, name.value if isinstance(name, Literal) else "", optional=True)
        arguments = [self.visit(argument) for argument in node.arguments]
        if node.target is not None:
            prefix = qualified_name(node.target)
            qualified = self._scope.functions.find(f"{prefix}.{node.function}") if prefix else None
            if qualified is None:
                arguments.insert(0, self.visit(node.target))
                self.checked.receivers.add(node)
            function = qualified or self._scope.functions.find(node.function)
        else:
            function = self._scope.functions.find(node.function)
        if function is None:
            return self._undeclared(node, node.function)
        if function.name in _LOGICAL:
            return self._logical(node, arguments)
        return self._resolve(node, function, arguments)

    def _logical(self, node: Call, arguments: list[Type]) -> Type:
        result = BOOL
        for argument, t in zip(node.arguments, arguments, strict=True):
            if not self.known.assignable([t], [BOOL]):
                result = self._mismatch(argument, BOOL, t)
        return result

    def _resolve(self, node: Call, function: Function, arguments: list[Type]) -> Type:
        is_member = node in self.checked.receivers
        result: Type | None = None
        fitting: list[Overload] = []
        for overload in function.overloads:
            if overload.is_member is not is_member:
                continue
            parameters, returned = self._instantiate(overload)
            if not self.known.assignable(arguments, parameters):
                continue
            fitting.append(overload)
            returned = self.known.apply(returned)
            if result is None:
                result = returned
            elif not is_dyn(result) and result != returned:
                result = DYN
        if result is None:
            shown = [str(self.known.apply(t, unbound_is_dyn=True)) for t in arguments]
            receiver = f"{shown.pop(0)}." if is_member else ""
            applied = f"{receiver}({', '.join(shown)})"
            return self._fault(node, f"found no matching overload for '{function.name}' applied to '{applied}'")
        self.checked.calls[node] = tuple(fitting)
        return result

    def _instantiate(self, overload: Overload) -> tuple[list[Type], Type]:
        """Return the overload's types with fresh type parameters."""
        if not overload.type_parameters:
            return list(overload.parameters), overload.result
        renamed = Substitution()
        for name in sorted(overload.type_parameters):
            renamed.assignable([self._fresh()], [parameter(name)])
        return [renamed.apply(t) for t in overload.parameters], renamed.apply(overload.result)

    def _fresh(self) -> Type:
        self._fresh_parameters += 1
        return parameter(f"_var{self._fresh_parameters}")

    # aggregates

    def _list(self, node: ListNode) -> Type:
        joined: Type | None = None
        for position, element in enumerate(node.elements):
            t = self.visit(element)
            if position in node.optional:
                t = self._unwrapped(element, t)
            joined = self._join(element, joined, t)
        return list_of(joined if joined is not None else self._fresh())

    def _map(self, node: MapNode) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            keys = self._join(entry.key, keys, self.visit(entry.key))
            t = self.visit(entry.value)
            if entry.is_optional:
                t = self._unwrapped(entry.value, t)
            values = self._join(entry.value, values, t)
        if keys is None or values is None:
            return map_of(self._fresh(), self._fresh())
        return map_of(keys, values)

    def _unwrapped(self, node: Node, t: Type) -> Type:
        inner, was_optional = unwrap_optional(t)
        if not was_optional and not is_dyn(inner):
            self._mismatch(node, optional_of(inner), inner)
        return inner

    def _join(self, node: Node, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self.known.assignable([previous], [current]):
            return more_general(previous, current)
        return DYN

    def _fold(self, node: Fold) -> Type:
        items = self.known.apply(self.visit(node.items))
        accumulated = self.visit(node.initial)
        first, second = self._iterated(node, items)
        with self._local({node.accumulator: accumulated}):
            with self._local({node.variable: first, node.second_variable: second}):
                self._assert(node.condition, BOOL)
                self._assert(node.step, accumulated)
            result = self.visit(node.result)
        return self.known.apply(result)

    def _iterated(self, node: Fold, items: Type) -> tuple[Type, Type]:
        """Return the types of the one or two iteration variables."""
        if items.kind is Kind.LIST:
            element = items.parameters[0]
            return (INT, element) if node.second_variable else (element, DYN)
        if items.kind is Kind.MAP:
            return items.parameters[0], items.parameters[1]
        if items.kind is Kind.PARAMETER or is_dyn_or_error(items):
            self.known.assignable([DYN], [items])
            return DYN, DYN
        message = f"expression of type '{items}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._fault(node.items, message)
        return ERROR, ERROR

    def _assert(self, node: Node, wanted: Type) -> None:
        t = self.visit(node)
        if not self.known.assignable([wanted], [t]):
            self._mismatch(node, wanted, t)

    @contextmanager
    def _local(self, names: dict[str, Type]) -> Iterator[None]:
        self._locals.append(names)
        yield
        self._locals.pop()

    # errors

    def _mismatch(self, node: Node, wanted: Type, found: Type) -> Type:
        return self._fault(node, f"expected type '{wanted}' but found '{found}'")

    def _fault(self, node: Node, message: str) -> Type:
        self.issues.append(Issue(node.offset, message))
        return ERROR
