"""Generates a CustomResourceDefinition from a msgspec type.

The type has the fields, their JSON names and descriptions (`Meta(description=...)`). CEL rules, required fields,
limits and list keys are an overlay: schema parts by dotted path, merged over the generated schema. Every field needs
a description, because `kubectl explain` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import inspect

from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition, Taint

CATEGORY = "nodeyard"


class MissingDescriptionError(ValueError):
    """A field has no description."""


@dataclass(frozen=True)
class Column:
    name: str
    path: str
    type: str = "string"
    priority: int = 0
    description: str = ""

    def render(self) -> Object:
        column: Object = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.description:
            column["description"] = self.description
        return {**column, "priority": self.priority} if self.priority else column


HELD_COLUMN = Column(
    "Held",
    '.status.conditions[?(@.type=="Held")].status',
    description="True while a plan waits for `nodeyard approve`.",
)


@dataclass(frozen=True)
class Definition:
    """A CRD: its type, names, printer columns and overlay."""

    type: type[msgspec.Struct]
    group: str
    version: str
    kind: str
    plural: str
    description: str
    namespaced: bool
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    overlay: Mapping[str, Object] = field(default_factory=dict)
    is_root: bool = True
    """Objects of this kind are root objects of plans. False for kinds that only plans for other objects write."""
    scale: tuple[str, str] | None = None
    """The JSON paths of spec and status replicas."""

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}"

    def render(self) -> Object:
        """Return the CustomResourceDefinition."""
        subresources: Object = {"status": {}}
        if self.scale:
            spec_replicas, status_replicas = self.scale
            subresources["scale"] = {"specReplicasPath": spec_replicas, "statusReplicasPath": status_replicas}
        version = {
            "name": self.version,
            "served": True,
            "storage": True,
            "subresources": subresources,
            "additionalPrinterColumns": [column.render() for column in self._columns()],
            "schema": {"openAPIV3Schema": self.schema()},
        }
        names: Object = {
            "kind": self.kind,
            "listKind": f"{self.kind}List",
            "plural": self.plural,
            "singular": self.kind.lower(),
            "shortNames": list(self.short_names),
            "categories": [CATEGORY],
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": self.group,
                "names": names,
                "scope": "Namespaced" if self.namespaced else "Cluster",
                "versions": [version],
            },
        }

    def _columns(self) -> list[Column]:
        """Return the printer columns; a root kind with conditions gets the column Held before its age."""
        status = self.schema()["properties"].get("status", {}).get("properties", {})
        if not self.is_root or "conditions" not in status:
            return list(self.columns)
        dates = [index for index, each in enumerate(self.columns) if each.type == "date"]
        place = dates[0] if dates else len(self.columns)
        return [*self.columns[:place], HELD_COLUMN, *self.columns[place:]]

    def schema(self) -> Object:
        """Return the structural schema."""
        root = _object_schema(inspect.type_info(self.type), "", self.overlay)
        properties = root["properties"]
        properties["metadata"] = {"type": "object", **self.overlay.get("metadata", {})}
        properties = {
            "apiVersion": {"type": "string", "description": "The API version of this object."},
            "kind": {"type": "string", "description": "The kind of this object."},
            **properties,
        }
        return {"description": self.description, **root, "properties": properties, **self.overlay.get("", {})}


_CONDITION: Object = {
    "type": "object",
    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
    "properties": {
        "type": {"type": "string", "maxLength": 316, "description": "Type of the condition."},
        "status": {
            "type": "string",
            "enum": ["True", "False", "Unknown"],
            "description": "Status of the condition: True, False or Unknown.",
        },
        "reason": {
            "type": "string",
            "maxLength": 1024,
            "description": "Machine-readable reason of the last transition, in CamelCase.",
        },
        "message": {"type": "string", "maxLength": 32768, "description": "Human-readable details of the reason."},
        "lastTransitionTime": {
            "type": "string",
            "format": "date-time",
            "description": "Time of the last change of the status.",
        },
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "minimum": 0,
            "description": "The metadata.generation that the condition was set for.",
        },
    },
}
_TAINT: Object = {
    "type": "object",
    "required": ["key", "effect"],
    "properties": {
        "key": {"type": "string", "description": "The taint's key."},
        "value": {"type": "string", "description": "The taint's value."},
        "effect": {"type": "string", "description": "NoSchedule, PreferNoSchedule or NoExecute."},
        "timeAdded": {"type": "string", "format": "date-time", "description": "When the taint was added."},
    },
}
_KUBERNETES_TYPES: Mapping[type, Object] = {Condition: _CONDITION, Taint: _TAINT}
"""Schemas of Kubernetes types, which have no descriptions."""


def _object_schema(info: inspect.Type, path: str, overlay: Mapping[str, Object]) -> Object:
    assert isinstance(info, inspect.StructType)
    properties: Object = {}
    for each in info.fields:
        below = f"{path}.{each.encode_name}" if path else each.encode_name
        if below == "metadata":
            properties["metadata"] = {"type": "object"}
            continue
        schema = _field_schema(each.type, below, overlay)
        if "description" not in schema:
            raise MissingDescriptionError(f"{info.cls.__name__}.{each.name} has no description")
        properties[each.encode_name] = schema
    return {"type": "object", "properties": properties}


def _field_schema(info: inspect.Type, path: str, overlay: Mapping[str, Object]) -> Object:
    extra: Object = {}
    if isinstance(info, inspect.Metadata):
        extra = dict(info.extra_json_schema or {})
        info = info.type
    # The description comes first in the YAML.
    description = {"description": extra["description"]} if "description" in extra else {}
    schema = {**description, **_type_schema(_remove_none(info), path, overlay), **extra}
    return _merge_overlay(schema, overlay.get(path, {}))


_INT_OR_STRING = {inspect.IntType, inspect.StrType}


def _remove_none(info: inspect.Type) -> inspect.Type:
    """Remove None from a union: an optional field may be missing. A union of int and str is int-or-string."""
    if not isinstance(info, inspect.UnionType):
        return info
    rest = [each for each in info.types if not isinstance(each, inspect.NoneType)]
    if {type(each) for each in rest} == _INT_OR_STRING:
        return inspect.UnionType(tuple(rest))
    if len(rest) != 1:
        raise TypeError(f"a field has one type, not {info.types}")
    return rest[0]


def _type_schema(info: inspect.Type, path: str, overlay: Mapping[str, Object]) -> Object:
    match info:
        case inspect.StructType():
            known = _KUBERNETES_TYPES.get(info.cls)
            return dict(known) if known is not None else _object_schema(info, path, overlay)
        case inspect.EnumType():
            return {"type": "string", "enum": [member.value for member in info.cls]}
        case inspect.DictType():
            return {"type": "object", "additionalProperties": _field_schema(info.value_type, f"{path}.*", overlay)}
        case inspect.VarTupleType() | inspect.ListType():
            return {"type": "array", "items": _field_schema(info.item_type, f"{path}[]", overlay)}
        case inspect.AnyType():
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        case inspect.UnionType():
            return {"x-kubernetes-int-or-string": True}
    scalar = _SCALARS.get(type(info))
    if scalar is None:
        raise TypeError(f"{path}: {type(info).__name__} has no place in a schema")
    return dict(scalar)


_SCALARS: Mapping[Any, Object] = {
    inspect.StrType: {"type": "string"},
    inspect.IntType: {"type": "integer"},
    inspect.FloatType: {"type": "number"},
    inspect.BoolType: {"type": "boolean"},
    inspect.DateTimeType: {"type": "string", "format": "date-time"},
}


def _merge_overlay(schema: Object, over: Object) -> Object:
    """Merge the overlay: it wins, a None removes the key, and CEL rules are appended."""
    rules: Sequence[Any] = [*schema.get("x-kubernetes-validations", ()), *over.get("x-kubernetes-validations", ())]
    merged = {word: value for word, value in {**schema, **over}.items() if value is not None}
    return {**merged, "x-kubernetes-validations": rules} if rules else merged
