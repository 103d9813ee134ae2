"""What the strategies of built-in kinds have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import ClassVar

from nodeyard.apiserver.kinds.columns.printer import PLAIN, Printer
from nodeyard.apiserver.kinds.decoding import zero
from nodeyard.apiserver.kinds.table import definitions
from nodeyard.apiserver.resources import Strategy
from nodeyard.kube.json import Json, Object, json_equal

Reader = Callable[[Object], str]
Paths = tuple[tuple[str, ...], ...]


class BuiltIn(Strategy):
    """A kind without status and without generation: what is written is kept."""

    definition: ClassVar[str]
    printer: ClassVar[Printer] = PLAIN
    uses_generation = False
    fields: ClassVar[Mapping[str, Reader]] = {}
    """By what a field selector may find an object, beside its name."""
    has_own_field_labels: ClassVar[bool] = False
    """Whether the kind converts field labels itself on the real server, which then words the refusal differently."""

    def reset_fields(self, subresource: str) -> Paths:
        """What a write to the endpoint does not change, and so does not come to own."""
        return ()

    def selectable(self, obj: Object) -> Mapping[str, str]:
        return {label: read(obj) for label, read in self.fields.items()}

    def field_labels(self) -> frozenset[str]:
        return frozenset(self.fields)

    def unknown_field_label(self, label: str) -> str:
        if self.has_own_field_labels:
            return f"field label not supported: {label}"
        return super().unknown_field_label(label)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        return self.printer.cells(obj, now)


class WithStatus(BuiltIn):
    """A kind whose status is written apart from the rest, and whose generation counts changes of its spec."""

    uses_generation = True

    def reset_fields(self, subresource: str) -> Paths:
        return (("spec",),) if subresource == "status" else (("status",),)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        return {**obj, "status": self.empty_status()}

    def prepare_update(self, new: Object, old: Object) -> Object:
        return keep(new, old, "status")

    def prepare_status(self, new: Object, old: Object) -> Object:
        return keep(new, old, "spec")

    def changes_generation(self, new: Object, old: Object) -> bool:
        return not json_equal(new.get("spec"), old.get("spec"))

    def empty_status(self) -> Object:
        return zero(definitions()[self.definition]["properties"]["status"]["ref"])


def keep(new: Object, old: Object, field: str) -> Object:
    """The new object with one field as it was."""
    if new.get(field) is old.get(field):
        return new
    if field in old:
        return {**new, field: old[field]}
    return {name: value for name, value in new.items() if name != field}


def keep_metadata(new: Object, old: Object, *fields: str) -> Object:
    """The new object with these metadata fields as they were."""
    metadata, before = dict(new["metadata"]), old["metadata"]
    for field in fields:
        metadata.pop(field, None)
        if field in before:
            metadata[field] = before[field]
    return {**new, "metadata": metadata}


def reader(*path: str) -> Reader:
    """Reads a string that may be missing at any step."""

    def read(obj: Object) -> str:
        value: Json = obj
        for name in path:
            value = (value or {}).get(name)
        return str(value or "")

    return read


def flag(*path: str) -> Reader:
    text = reader(*path)
    return lambda obj: "true" if text(obj) == "True" else "false"
