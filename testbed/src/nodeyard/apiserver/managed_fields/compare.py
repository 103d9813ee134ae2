"""Comparison of two values of one type, as field sets.

Values are persistent, so identical objects are skipped: after a patch of one label only the path to that label is
walked. After an update, whose object was decoded from the request, equal parts are skipped when they are reached.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nodeyard.apiserver.managed_fields.fieldset import LEAF, FieldSet, ordered, union, without
from nodeyard.apiserver.managed_fields.paths import SELF
from nodeyard.apiserver.managed_fields.type_shape import Kind, Shape, as_list, as_map
from nodeyard.kube.json import Json, json_equal


@dataclass(slots=True)
class Comparison:
    """Three disjoint field sets; all are empty if the values are equal."""

    removed: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    added: FieldSet = field(default_factory=dict)

    @property
    def is_same(self) -> bool:
        return not (self.removed or self.modified or self.added)

    @property
    def gained(self) -> FieldSet:
        """Fields with a new value."""
        return union(self.modified, self.added)

    def excluding(self, reset: FieldSet) -> Comparison:
        """Return the comparison without the fields that this endpoint does not write, and all below them."""
        if not reset:
            return self
        return Comparison(without(self.removed, reset), without(self.modified, reset), without(self.added, reset))


def compare(shape: Shape, old: Json, new: Json) -> Comparison:
    """Compare two values. Raises ShapeError if a list item has no valid key."""
    result = Comparison()
    _compare(shape, old, new, result)
    result.removed, result.modified, result.added = map(_sorted, (result.removed, result.modified, result.added))
    return result


def _sorted(node: FieldSet) -> FieldSet:
    if not node:
        return node
    return ordered({element: _sorted(below) for element, below in node.items()})


def _compare(shape: Shape, old: Json, new: Json, below: Comparison) -> bool:
    """Collect the differences below a value that is on both sides; return whether it is a leaf that differs."""
    before, after = shape.kind(old), shape.kind(new)
    differs = False
    for kind in (before,) if before is after else (before, after):
        if _is_leaf(shape, kind, old, new):
            differs = differs or not json_equal(old, new, by_value=True)
        elif kind is Kind.MAP:
            _compare_maps(shape, old, new, below)
        else:
            _compare_lists(shape, as_list(old), as_list(new), below)
    return differs


def _is_leaf(shape: Shape, kind: Kind, old: Json, new: Json) -> bool:
    """True if a value is compared as a whole. Two empty or null collections are, to tell them from each other."""
    if kind is Kind.MAP:
        return shape.is_atomic_map or not (as_map(old) or as_map(new))
    if kind is Kind.LIST:
        return shape.list_type == "atomic" or not (as_list(old) or as_list(new))
    return True


def _compare_maps(shape: Shape, old: Json, new: Json, below: Comparison) -> None:
    before, after = as_map(old), as_map(new)
    for name, value in before.items():
        if name not in after:
            below.removed[f"f:{name}"] = whole(shape.member(name), value)
        elif not json_equal(value, after[name]):
            _compare_part(shape.member(name), f"f:{name}", value, after[name], below)
    for name, value in after.items():
        if name not in before:
            below.added[f"f:{name}"] = whole(shape.member(name), value)


def _compare_part(shape: Shape, element: str, old: Json, new: Json, below: Comparison) -> None:
    part = Comparison()
    if _compare(shape, old, new, part):
        below.modified[element] = LEAF
    if part.removed:
        below.removed[element] = part.removed
    if part.modified:
        below.modified[element] = part.modified
    if part.added:
        below.added[element] = part.added


def _compare_lists(shape: Shape, old: list[Json], new: list[Json], below: Comparison) -> None:
    before, after = _grouped(shape, old), _grouped(shape, new)
    for element in before | after:
        ours, theirs = before.get(element, []), after.get(element, [])
        if len(ours) <= 1 and len(theirs) <= 1:
            _compare_item(shape, element, ours, theirs, below)
        elif len(ours) > 1 and len(theirs) > 1:
            if not json_equal(ours, theirs, by_value=True):
                below.modified[element] = LEAF
        else:
            # Duplicates are owned as one leaf, so the parts of a single item are added or removed with them.
            _compare_item(shape, element, ours if len(ours) == 1 else [], theirs if len(theirs) == 1 else [], below)
            (below.removed if len(ours) > 1 else below.added)[element] = LEAF


def _grouped(shape: Shape, items: list[Json]) -> dict[str, list[Json]]:
    groups: dict[str, list[Json]] = {}
    for element, item in zip(shape.elements(items), items, strict=True):
        groups.setdefault(element, []).append(item)
    return groups


def _compare_item(shape: Shape, element: str, old: list[Json], new: list[Json], below: Comparison) -> None:
    if not old and not new:
        return
    if not old:
        below.added[element] = whole(shape.item, new[0])
    elif not new:
        below.removed[element] = whole(shape.item, old[0])
    elif not json_equal(old[0], new[0]):
        _compare_part(shape.item, element, old[0], new[0], below)


def whole(shape: Shape, value: Json) -> FieldSet:
    """Return the node of a value that is on one side only: itself and all its parts."""
    kind = shape.kind(value)
    if _is_leaf(shape, kind, value, None):
        return LEAF
    if kind is Kind.MAP:
        return {SELF: {}, **{f"f:{name}": whole(shape.member(name), part) for name, part in as_map(value).items()}}
    node: FieldSet = {SELF: {}}
    for element, items in _grouped(shape, as_list(value)).items():
        node[element] = LEAF if len(items) > 1 else whole(shape.item, items[0])
    return node
