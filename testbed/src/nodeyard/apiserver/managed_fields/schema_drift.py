"""Field sets written under an older schema.

When a CRD turns a map or a list atomic, entries may still name parts of it. Whoever owned a part then owns the whole.
The other way round nothing is done: who owned the whole keeps it.
"""

from __future__ import annotations

from nodeyard.apiserver.managed_fields.fieldset import LEAF, FieldSet
from nodeyard.apiserver.managed_fields.paths import FIELD, KEY, SELF
from nodeyard.apiserver.managed_fields.type_shape import DEDUCED, Shape


def caught_up(shape: Shape, fields: FieldSet) -> FieldSet:
    """The set as the shape of today would have it; the same object when nothing drifted."""
    nodes = {element: node if element == SELF else _node(shape, element, node) for element, node in fields.items()}
    return fields if all(nodes[element] is node for element, node in fields.items()) else nodes


def _node(parent: Shape, element: str, node: FieldSet) -> FieldSet:
    shape = _below(parent, element)
    if shape is None or not node:
        return node
    if shape.has_map:
        if shape.element is DEDUCED and not shape.fields:
            return node
        return LEAF if shape.is_atomic_map else caught_up(shape, node)
    if shape.has_list:
        return LEAF if shape.list_type == "atomic" else caught_up(shape, node)
    return node


def _below(shape: Shape, element: str) -> Shape | None:
    if element.startswith(FIELD):
        return (shape.fields.get(element[2:]) or shape.element) if shape.has_map else None
    return shape.item if element.startswith(KEY) and shape.has_list else None
