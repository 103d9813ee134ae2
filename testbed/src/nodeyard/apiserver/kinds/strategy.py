"""The strategy of a built-in kind: names, subresources, defaults, validation and columns, all declared on one class.

The rules of kube-apiserver's `pkg/registry/<group>/<kind>/strategy.go`, per kind in the modules beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import ClassVar

from nodeyard.apiserver.kinds.columns import AGE, NAME, age_of, name_of
from nodeyard.apiserver.kinds.edits import keep
from nodeyard.apiserver.kinds.go_zero import zero_struct
from nodeyard.apiserver.kinds.table import definitions
from nodeyard.apiserver.resources import Column, Scale, Strategy
from nodeyard.kube.json import Json, Object, json_equal

Default = Callable[[Object], Object]
Reader = Callable[[Object], str]
Paths = tuple[tuple[str, ...], ...]


class BuiltIn(Strategy):
    """A kind without status and without metadata.generation."""

    definition: ClassVar[str]
    plural: ClassVar[str]
    namespaced: ClassVar[bool] = True
    short_names: ClassVar[tuple[str, ...]] = ()
    categories: ClassVar[tuple[str, ...]] = ()
    has_status: ClassVar[bool] = False
    scale: ClassVar[Scale | None] = None
    columns: ClassVar[tuple[Column, ...]] = (NAME, AGE)
    defaults: ClassVar[Mapping[str, Default]] = {}
    """Defaults by definition: of the kind, and of types that it is the first to contain. They are applied wherever the
    type occurs, so a pod's are the same in every template. Each takes an object whose fields are decoded."""
    uses_generation = False
    fields: ClassVar[Mapping[str, Reader]] = {}
    """Fields that field selectors can select by, beside name and namespace."""

    def selectable(self, obj: Object) -> Mapping[str, str]:
        return {label: read(obj) for label, read in self.fields.items()}

    def field_labels(self) -> frozenset[str]:
        return frozenset(self.fields)

    def unknown_field_label(self, label: str) -> str:
        if self.has_own_field_labels:
            return f"field label not supported: {label}"
        return super().unknown_field_label(label)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        return [name_of(obj), age_of(obj, now)]


class WithStatus(BuiltIn):
    """A kind with the status subresource, whose generation counts changes of its spec."""

    has_status = True
    uses_generation = True

    def reset_fields(self, subresource: str) -> Paths:
        return (("spec",),) if subresource == "status" else (("status",),)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        return {**obj, "status": zero_struct(definitions()[self.definition]["properties"]["status"]["ref"])}

    def prepare_update(self, new: Object, old: Object) -> Object:
        return keep(new, old, "status")

    def prepare_status(self, new: Object, old: Object) -> Object:
        return keep(new, old, "spec")

    def changes_generation(self, new: Object, old: Object) -> bool:
        return not json_equal(new.get("spec"), old.get("spec"))


def reader(*path: str) -> Reader:
    """Read a string that may be missing at any step."""

    def read(obj: Object) -> str:
        value: Json = obj
        for name in path:
            value = (value or {}).get(name)
        return str(value or "")

    return read


def flag(*path: str) -> Reader:
    text = reader(*path)
    return lambda obj: "true" if text(obj) == "True" else "false"
