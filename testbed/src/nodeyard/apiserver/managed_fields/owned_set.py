"""The field set of a value, and removal of fields from a value."""

from __future__ import annotations

from nodeyard.apiserver.managed_fields.fieldset import EMPTY, LEAF, FieldSet, is_member, ordered
from nodeyard.apiserver.managed_fields.paths import FIELD, KEY, SELF
from nodeyard.apiserver.managed_fields.type_shape import Kind, Shape, ShapeError, as_list, as_map
from nodeyard.kube.json import Json


def to_field_set(shape: Shape, value: Json) -> FieldSet:
    """Return the fields that a configuration sets: its leaves, list items and map entries.

    A named field that has parts is not itself a member: who sets one container does not own `containers`.
    """
    return _below(shape, value)


def _below(shape: Shape, value: Json) -> FieldSet:
    kind = shape.kind(value)
    if kind is Kind.MAP and not shape.is_atomic_map:
        return _members(shape, value)
    if kind is Kind.LIST and shape.list_type != "atomic":
        return _items(shape, as_list(value))
    return EMPTY


def _is_leaf(shape: Shape, value: Json) -> bool:
    match shape.kind(value):
        case Kind.MAP:
            return shape.is_atomic_map
        case Kind.LIST:
            return shape.list_type == "atomic"
        case _:
            return True


def _members(shape: Shape, value: Json) -> FieldSet:
    nodes = {}
    for name, part in as_map(value).items():
        member = shape.member(name)
        is_set = part is None or part == {} or name not in shape.fields or _is_leaf(member, part)
        node = _node(_below(member, part), is_set)
        if node is not None:
            nodes[FIELD + name] = node
    return ordered(nodes)


def _items(shape: Shape, items: list[Json]) -> FieldSet:
    nodes: FieldSet = {}
    for element, item in zip(shape.elements(items), items, strict=True):
        # Duplicates are owned as one leaf.
        nodes[element] = LEAF if element in nodes else _node(_below(shape.item, item), True)
    return ordered(nodes)


def _node(below: FieldSet, is_set: bool) -> FieldSet | None:
    if not below:
        return LEAF if is_set else None
    return {SELF: {}, **below} if is_set else below


def ensure_named_members(shape: Shape, fields: FieldSet) -> FieldSet:
    """Add every named field that leads to a member: the owner of a part then also holds the whole."""
    return {element: _with_named(shape, element, node) for element, node in fields.items()}


def _with_named(shape: Shape | None, element: str, node: FieldSet) -> FieldSet:
    if not node or element == SELF:
        return node
    below = _shape_below(shape, element)
    named = {child: _with_named(below, child, grandchildren) for child, grandchildren in node.items()}
    is_named = element.startswith(FIELD) and shape is not None and shape.has_map and element[2:] in shape.fields
    return {SELF: {}, **named} if is_named and SELF not in named else named


def _shape_below(shape: Shape | None, element: str) -> Shape | None:
    if shape is None:
        return None
    if element.startswith(FIELD):
        return shape.fields.get(element[2:]) or shape.element if shape.has_map else None
    return shape.item if element.startswith(KEY) and shape.has_list else None


# removal


def remove_items(shape: Shape, value: Json, fields_to_remove: FieldSet) -> Json:
    """Remove these fields from a value. A map or list that becomes empty is null."""
    kind = shape.kind(value)
    if kind is Kind.MAP:
        return None if shape.is_atomic_map else _remove_members(shape, value, fields_to_remove)
    if kind is Kind.LIST:
        return None if shape.list_type == "atomic" else _remove_list_items(shape, value, fields_to_remove)
    return value


def _remove_members(shape: Shape, value: Json, fields_to_remove: FieldSet) -> Json:
    kept = {}
    for name, part in as_map(value).items():
        node = fields_to_remove.get(FIELD + name)
        if node is None:
            kept[name] = part
        elif not is_member(node):
            kept[name] = remove_items(shape.member(name), part, node)
    return kept or None


def _remove_list_items(shape: Shape, value: Json, fields_to_remove: FieldSet) -> Json:
    kept = []
    for item in as_list(value):
        node = fields_to_remove.get(_element(shape, item))
        if node is None:
            kept.append(item)
        elif not is_member(node):
            kept.append(remove_items(shape.item, item, node))
    return kept or None


def _element(shape: Shape, item: Json) -> str:
    try:
        return shape.item_element(item)
    except ShapeError:
        return ""
