"""The syntax tree of an expression.

Macros are expanded: `all`, `map` and others are `Fold`s, `has()` is a `Select` that tests. Nodes are compared by
identity, because the checker keeps its results by node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    offset: int
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Ident:
    offset: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select:
    offset: int
    operand: Node
    field: str
    is_test: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    offset: int
    function: str
    arguments: tuple[Node, ...]
    target: Node | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ListNode:
    offset: int
    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()
    """Positions of `?element`."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    offset: int
    key: Node
    value: Node
    is_optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MapNode:
    offset: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """`Name{field: value}`: parsed, but no type of Kubernetes can be constructed."""

    offset: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A comprehension: `accumulator` starts as `initial` and takes each `step` while `condition` is true."""

    offset: int
    items: Node
    variable: str
    second_variable: str
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


Node: TypeAlias = Literal | Ident | Select | Call | ListNode | MapNode | Struct | Fold


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return (node.target, *node.arguments) if node.target is not None else node.arguments
        case ListNode():
            return node.elements
        case MapNode():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value))
        case Fold():
            return (node.items, node.initial, node.condition, node.step, node.result)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and its descendants, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def depth(node: Node) -> int:
    """Return the depth of the tree."""
    levels, level = 0, [node]
    while level:
        levels += 1
        level = [child for parent in level for child in children(parent)]
    return levels


def qualified_name(node: Node) -> str | None:
    """Return `a.b.c` if the node is a chain of names, else an empty string."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.is_test:
        prefix = qualified_name(node.operand)
        return f"{prefix}.{node.field}" if prefix is not None else None
    return None
