"""Shapes: what ownership has to know of a type, that is, which parts of a value can have different managers.

A `Shape` is compiled once from a `Schema`. A value is either a leaf (scalars, atomic lists and maps) or has parts: the
members of a map, the items of a set, the items of a keyed list. If the schema has nothing (preserved unknown fields),
the value decides: maps have parts, lists are atomic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, Literal

from nodeyard.apiserver.managed_fields import paths
from nodeyard.kube.goformat import quote
from nodeyard.kube.json import Json, Object
from nodeyard.schema.model import UNSET, ListType, Schema

ScalarType = Literal["", "string", "numeric", "boolean", "untyped"]


class Kind(Enum):
    MAP = "map"
    SCALAR = "scalar"
    LIST = "list"


class ShapeError(Exception):
    """A list item without a valid key."""


@dataclass(slots=True, eq=False)
class Shape:
    """One node of a type. A node may allow a map, a list and a scalar at once; then the value decides."""

    scalar: ScalarType = ""

    has_map: bool = False
    fields: dict[str, Shape] = field(default_factory=dict)
    """The named members."""
    element: Shape | None = None
    """The shape of all other members; None if there are none."""
    is_atomic_map: bool = False

    has_list: bool = False
    items: Shape | None = None
    list_type: ListType = "atomic"
    keys: tuple[tuple[str, Json], ...] = ()
    """The keys of a list map with their defaults, None for no default."""

    def kind(self, value: Json) -> Kind:
        """Return how a value is treated. A value that the type does not allow is treated as one that it allows."""
        if isinstance(value, dict):
            if self.has_map:
                return Kind.MAP
        elif isinstance(value, list):
            if self.has_list:
                return Kind.LIST
        elif value is not None and self.scalar:
            return Kind.SCALAR
        if self.has_map:
            return Kind.MAP
        return Kind.SCALAR if self.scalar else Kind.LIST

    def member(self, name: str) -> Shape:
        """Return the shape of a member of a map; deduced if the type has no such member."""
        return self.fields.get(name) or self.element or DEDUCED

    def item_element(self, item: Json) -> str:
        """Return the path element of an item of this set or list map."""
        if self.keys:
            return paths.key(self._keys_of(item))
        if isinstance(item, dict):
            raise ShapeError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise ShapeError("not supported: associative list with lists as elements")
        if item is None:
            raise ShapeError("associative list without keys has an element that's an explicit null")
        return paths.value(item)

    def _keys_of(self, item: Json) -> list[tuple[str, Json]]:
        if item is None:
            raise ShapeError("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise ShapeError("associative list with keys may not have non-map elements")
        found = [(name, item.get(name, default)) for name, default in self.keys if name in item or default is not None]
        if not found:
            names = " ".join(quote(name) for name, _ in self.keys)
            raise ShapeError(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return found

    def elements(self, items: list[Json]) -> list[str]:
        """Return the path elements of all items in order."""
        return [self.item_element(item) for item in items]

    @property
    def item(self) -> Shape:
        return self.items or OPAQUE


OPAQUE: Final = Shape(scalar="untyped", has_map=True, is_atomic_map=True, has_list=True)
"""Any value, with one owner."""
OPAQUE.element = OPAQUE

DEDUCED: Final = Shape(scalar="untyped", has_map=True, has_list=True)
"""Any value; maps have parts."""
DEDUCED.element = DEDUCED

_STRING: Final = Shape(scalar="string")

_TEXTS = Schema(type="object", additional=Schema(type="string"))
_TIME = Schema(type="string", format="date-time")
_REFERENCE = Schema(
    type="object",
    map_type="atomic",
    properties={
        **{name: Schema(type="string") for name in ("apiVersion", "kind", "name", "uid")},
        **{name: Schema(type="boolean") for name in ("blockOwnerDeletion", "controller")},
    },
)
_OBJECT_META = Schema(
    type="object",
    properties={
        **{
            name: Schema(type="string")
            for name in ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion")
        },
        "generation": Schema(type="integer"),
        "creationTimestamp": _TIME,
        "deletionTimestamp": _TIME,
        "deletionGracePeriodSeconds": Schema(type="integer"),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "ownerReferences": Schema(type="array", items=_REFERENCE, list_type="map", list_map_keys=("uid",)),
        "finalizers": Schema(type="array", items=Schema(type="string"), list_type="set"),
        "managedFields": Schema(type="array", items=Schema(type="object", preserve_unknown=True), list_type="atomic"),
    },
)


def shape_of(schema: Schema) -> Shape:
    """Return the shape of a whole object. Custom resources have the metadata of every object."""
    known: Shape | None = schema.compiled.get("shape")
    if known is None:
        root = _Compiler().shape(schema, preserves=False)
        metadata = schema.properties.get("metadata")
        if metadata is None or "ownerReferences" not in metadata.properties:
            root = replace(root, fields={**root.fields, **_object_fields()})
        known = schema.compiled["shape"] = root
    return known


def _object_fields() -> dict[str, Shape]:
    return {"apiVersion": _STRING, "kind": _STRING, "metadata": _METADATA}


class _Compiler:
    """Compiles each node once, also of recursive types."""

    def __init__(self) -> None:
        # By id of the schema, which is kept so that its id is not reused.
        self._known: dict[tuple[int, bool], tuple[Schema, Shape]] = {}

    def shape(self, schema: Schema | None, *, preserves: bool) -> Shape:
        if schema is None:
            return OPAQUE
        preserves = preserves or schema.preserve_unknown
        known = self._known.get((id(schema), preserves))
        if known is not None:
            return known[1]
        shape = Shape()
        self._known[id(schema), preserves] = (schema, shape)
        shape.scalar = _scalar(schema)
        if schema.type in ("object", "") and not schema.int_or_string:
            self._fill_map(shape, schema, preserves)
        if schema.type in ("array", "") and not schema.int_or_string:
            self._fill_list(shape, schema, preserves)
        return shape

    def _fill_map(self, shape: Shape, schema: Schema, preserves: bool) -> None:
        shape.has_map = True
        shape.is_atomic_map = schema.map_type == "atomic"
        shape.fields = {name: self.shape(member, preserves=preserves) for name, member in schema.properties.items()}
        if schema.embedded:
            shape.fields.update(_object_fields())
        if schema.additional is not None:
            shape.element = self.shape(schema.additional, preserves=preserves)
        elif preserves or not schema.properties:
            shape.element = DEDUCED

    def _fill_list(self, shape: Shape, schema: Schema, preserves: bool) -> None:
        shape.has_list = True
        shape.items = self.shape(schema.items, preserves=preserves)
        shape.list_type = schema.list_type or "atomic"
        if shape.list_type == "map":
            shape.keys = tuple(_keys(schema))


def _keys(schema: Schema) -> Iterator[tuple[str, Json]]:
    properties = schema.items.properties if schema.items else {}
    for name in schema.list_map_keys:
        member = properties.get(name)
        default = member.default if member else UNSET
        yield name, None if default is UNSET else default


def _scalar(schema: Schema) -> ScalarType:
    if schema.int_or_string or schema.type == "":
        return "untyped"
    if schema.type in ("integer", "number"):
        return "numeric"
    if schema.type == "boolean":
        return "boolean"
    if schema.type == "string":
        return "string" if schema.format in ("", "byte") else "untyped"
    return ""


_METADATA: Final = _Compiler().shape(_OBJECT_META, preserves=False)


def as_map(value: Json) -> Object:
    """Return the value as a map; null and values of other types have no members."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
