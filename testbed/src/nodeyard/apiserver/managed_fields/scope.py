"""Scope of a write: schema, version, subresource, manager and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeAlias

from nodeyard.apiserver.kinds.go_zero import is_built_in
from nodeyard.apiserver.managed_fields.fieldset import LEAF, FieldSet, field_set
from nodeyard.apiserver.managed_fields.managers import Identity, fields_of, with_fields
from nodeyard.apiserver.managed_fields.paths import FIELD, KEY, SELF, field
from nodeyard.apiserver.managed_fields.type_shape import DEDUCED, Shape, shape_of
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.schema.model import Schema

ResetFields: TypeAlias = tuple[tuple[str, ...], ...]


@lru_cache(maxsize=512)
def _fields(paths: ResetFields) -> FieldSet:
    return field_set(*(map(field, path) for path in paths))


@dataclass(frozen=True, slots=True)
class Scope:
    """One write to one endpoint. All versions of a kind are taken to have the same schema.

    `reset` are the fields that this endpoint does not write (status on the main one), with all below them.
    """

    schema: Schema
    api_version: str
    manager: str
    now: datetime
    subresource: str = ""
    reset: ResetFields = ()

    @property
    def shape(self) -> Shape:
        return shape_of(self.schema)

    @property
    def reset_fields(self) -> FieldSet:
        return _fields(self.reset)

    @property
    def time(self) -> str:
        return format_rfc3339(self.now)

    def current(self, kind: str, managers: Mapping[Identity, Object]) -> dict[Identity, Object]:
        """Adapt the entries of custom resources to the schema of today."""
        if is_built_in(self.api_version, kind):
            return dict(managers)
        return {
            identity: with_fields(entry, reconcile_with_schema(self.shape, fields_of(entry)))
            for identity, entry in managers.items()
        }


def reconcile_with_schema(shape: Shape, fields: FieldSet) -> FieldSet:
    """Adapt a field set written under an older schema; return the same object if nothing changes.

    When a CRD makes a map or a list atomic, entries may still name parts of it: the owner of a part then owns the
    whole. Nothing is done in the other direction: the owner of the whole keeps it.
    """
    nodes = {
        element: node if element == SELF else _reconcile_node(shape, element, node) for element, node in fields.items()
    }
    return fields if all(nodes[element] is node for element, node in fields.items()) else nodes


def _reconcile_node(parent: Shape, element: str, node: FieldSet) -> FieldSet:
    shape = _below(parent, element)
    if shape is None or not node:
        return node
    if shape.has_map:
        if shape.element is DEDUCED and not shape.fields:
            return node
        return LEAF if shape.is_atomic_map else reconcile_with_schema(shape, node)
    if shape.has_list:
        return LEAF if shape.list_type == "atomic" else reconcile_with_schema(shape, node)
    return node


def _below(shape: Shape, element: str) -> Shape | None:
    if element.startswith(FIELD):
        return (shape.fields.get(element[2:]) or shape.element) if shape.has_map else None
    return shape.item if element.startswith(KEY) and shape.has_list else None


def group_version_kind(obj: Mapping[str, Any]) -> str:
    """`apps/v1, Kind=Deployment`."""
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    return f"{group}/{version}, Kind={obj.get('kind') or ''}"
