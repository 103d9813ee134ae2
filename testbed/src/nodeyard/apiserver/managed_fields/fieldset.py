"""Field sets, in their stored form.

fieldsV1 is a trie: each node maps path elements to child nodes. A node is a member of the set if it is empty, or if it
has `.` beside its children; other nodes only lead to members. The functions here work on that form directly, so nothing
is decoded or encoded, and unchanged entries of managedFields are never walked. Nodes are persistent values: a result
shares what it has in common with its arguments, and is the very same object if nothing changed.

The empty set is `{}` at the top; below the top None stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from nodeyard.apiserver.managed_fields.paths import SELF, order

FieldSet: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

EMPTY: Final[FieldSet] = {}
LEAF: Final[FieldSet] = {}
"""The node of a member without children."""


def field_set(*paths: Iterable[str]) -> FieldSet:
    """Return the set of these paths."""
    top: FieldSet = {}
    for path in paths:
        top = union(top, _single(tuple(path)))
    return top


def _single(path: Path) -> FieldSet:
    node = LEAF
    for element in reversed(path):
        node = {element: node}
    return node


def is_member(node: FieldSet | None) -> bool:
    return node is not None and (not node or SELF in node)


def members(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """Yield all paths of the set: at each level the members first and then their children, as conflicts are listed."""
    for element, node in fields.items():
        if element != SELF and is_member(node):
            yield (*prefix, element)
    for element, node in fields.items():
        if element != SELF and node:
            yield from members(node, (*prefix, element))


def ordered(node: FieldSet) -> FieldSet:
    """Sort the elements of a node in the order of fieldsV1; its children are sorted already."""
    return {element: node[element] for element in sorted(node, key=order)}


# algebra: each function works on the children of a node; the `_node` variant adds the membership of the node itself


def _node(below: FieldSet, member: bool) -> FieldSet | None:
    """Make a node of these children, with or without being a member itself."""
    marked = SELF in below
    if len(below) == marked:
        return LEAF if member else None
    if member == marked:
        return below
    if member:
        return {SELF: {}, **below}
    return {element: node for element, node in below.items() if element != SELF}


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields in either set."""
    added = {}
    for element, theirs in right.items():
        if element == SELF:
            continue
        ours = left.get(element)
        node = theirs if ours is None else _union_node(ours, theirs)
        if node is not ours:
            added[element] = node
    if not added:
        return left
    if all(element in left for element in added):
        return {**left, **added}
    return ordered({**left, **added})


def _union_node(left: FieldSet, right: FieldSet) -> FieldSet:
    if left is right or (not left and not right):
        return left
    node = _node(union(left, right), is_member(left) or is_member(right))
    return LEAF if node is None else node


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields in the first set and not in the second."""
    changed = {}
    for element, theirs in right.items():
        ours = left.get(element)
        if ours is None or element == SELF:
            continue
        node = _difference_node(ours, theirs)
        if node is not ours:
            changed[element] = node
    return _replaced(left, changed)


def _difference_node(left: FieldSet, right: FieldSet) -> FieldSet | None:
    if not left:
        return None if is_member(right) else left
    return _node(difference(left, right), is_member(left) and not is_member(right))


def without(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields of the first set that are not in the second, nor below one of its members."""
    changed = {}
    for element, theirs in right.items():
        ours = left.get(element)
        if ours is None or element == SELF:
            continue
        node = None if is_member(theirs) else _without_node(ours, theirs)
        if node is not ours:
            changed[element] = node
    return _replaced(left, changed)


def _without_node(left: FieldSet, right: FieldSet) -> FieldSet | None:
    return _node(without(left, right), is_member(left)) if left else left


def _replaced(left: FieldSet, changed: dict[str, FieldSet | None]) -> FieldSet:
    if not changed:
        return left
    nodes = {element: changed.get(element, node) for element, node in left.items()}
    return {element: node for element, node in nodes.items() if node is not None}


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields in both sets."""
    if left is right:
        return left
    common = {}
    for element, ours in left.items():
        theirs = right.get(element)
        if theirs is None or element == SELF:
            continue
        node = _node(intersection(ours, theirs), is_member(ours) and is_member(theirs))
        if node is not None:
            common[element] = node
    return common


def includes(left: FieldSet, right: FieldSet) -> bool:
    """True if every member of the second set is in the first."""
    return left is right or not difference(right, left)
