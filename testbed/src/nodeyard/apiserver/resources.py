"""What the server serves: one `Resource` per kind, built in or made by a CRD.

A resource knows its names, its versions and their schemas. What is particular to a kind beyond its schema (defaults,
what a status write may touch, validation, columns) is its `Strategy`; custom resources use the base class as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, NamedTuple

from nodeyard.apiserver.cel.rules import CompiledRules
from nodeyard.kube.ages import age
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Json, Object
from nodeyard.schema.model import Schema


class GroupResource(NamedTuple):
    """The key under which objects are stored; the version does not matter there."""

    group: str
    plural: str


class GroupVersionKind(NamedTuple):
    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class Subresource(NamedTuple):
    """`kind` is what the endpoint reads and writes."""

    name: str
    kind: GroupVersionKind
    verbs: tuple[str, ...]


SCALE = GroupVersionKind("autoscaling", "v1", "Scale")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table. `path` is the JSONPath of a CRD's column; built-in kinds compute their cells."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the scale subresource reads and writes; paths as in a CRD, `.spec.replicas`."""

    spec_path: str
    status_path: str
    selector_path: str = ""


@dataclass(slots=True)
class Version:
    name: str
    schema: Schema
    openapi: Json = None
    """The OpenAPI v3 form that is published; built-in kinds share definitions by reference."""
    served: bool = True
    columns: tuple[Column, ...] = ()
    has_status: bool = False
    scale: Scale | None = None
    deprecation: str = ""
    """The Warning header's text; empty when the version is not deprecated."""
    rules: CompiledRules | None = None
    """The compiled CEL rules of a custom resource."""


class Strategy:
    """What is particular to a kind. Objects given are never changed in place; changed ones are returned."""

    uses_generation = True
    """Whether metadata.generation is kept; Node, Pod (before 1.33), Secret and the like have none."""
    allows_unconditional_update = True
    """Whether an update without resourceVersion is taken (built-in kinds: mostly yes; custom resources: no)."""
    allows_create_on_update = False
    """Whether an update makes the object where there is none."""
    allows_delete_collection = True
    subresources: ClassVar[tuple[Subresource, ...]] = ()
    """Subresources beside status and scale."""
    has_own_field_labels: ClassVar[bool] = False
    """Whether the kind says itself which fields can be selected by: the real server words its refusal differently."""

    def default(self, obj: Object) -> Object:
        """Defaults beyond those in the schema."""
        return obj

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        """Drop what a creator may not set (status, where it is a subresource)."""
        return obj

    def prepare_update(self, new: Object, old: Object) -> Object:
        """Keep what this endpoint may not change (status, where it is a subresource)."""
        return new

    def prepare_status(self, new: Object, old: Object) -> Object:
        """A write to /status: keep everything but status (and, as the real one does, metadata's labels etc.)."""
        return new

    def prepare_finalize(self, new: Object, old: Object) -> Object:
        """A write to /finalize, which only namespaces have: spec.finalizers, and nothing else."""
        return {**old, "metadata": new["metadata"], "spec": new.get("spec") or {}}

    def changes_generation(self, new: Object, old: Object) -> bool:
        """Whether this update counts as a change of what is wanted."""
        return False

    def reset_fields(self, subresource: str) -> tuple[tuple[str, ...], ...]:
        """Paths that a write to this endpoint does not touch, and so does not own."""
        return ()

    def validate_create(self, obj: Object) -> list[FieldError]:
        return []

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return []

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return []

    def validate_name(self, name: str) -> list[str]:
        """Faults of metadata.name in words; the default is a DNS subdomain."""
        from nodeyard.kube.names import subdomain_faults

        return subdomain_faults(name)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        return []

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Fields beyond metadata.name and metadata.namespace that a field selector may name."""
        return {}

    def field_labels(self) -> frozenset[str]:
        """The names of `selectable`."""
        return frozenset()

    def unknown_field_label(self, label: str) -> str:
        """The refusal of a field selector on anything else."""
        return f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'

    def prepare_delete(self, obj: Object, now: datetime) -> Object | None:
        """What deletion does to the object beyond setting its timestamp; None where nothing is special."""
        return None

    def holds(self, obj: Object) -> bool:
        """Whether something beyond metadata.finalizers keeps a deleted object (a namespace's spec.finalizers)."""
        return False

    is_graceful = False
    """Whether objects of this kind may have a grace period; else they are gone without a mark of it."""
    returns_deleted = False
    """Whether a delete that takes effect at once answers with the object rather than a Status."""

    def grace_period(self, obj: Object, asked: int | None) -> int:
        """Seconds between the delete call and the object's end; only pods have any."""
        return 0

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        """The row of a Table, one cell per column of the version: name and age where a kind has nothing to add."""
        metadata = obj["metadata"]
        return [metadata["name"], age(metadata.get("creationTimestamp"), now)]


@dataclass(slots=True)
class Resource:
    group: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    versions: dict[str, Version]
    """In the order of preference."""
    storage_version: str
    strategy: Strategy
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    list_kind: str = ""
    is_custom: bool = False
    selectable_fields: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    """Of a CRD's selectableFields: dotted path to reader."""
    terminating: bool = False
    """The CRD is being deleted: creates are refused, the rest is served."""

    def __post_init__(self) -> None:
        self.list_kind = self.list_kind or f"{self.kind}List"

    @property
    def key(self) -> GroupResource:
        return GroupResource(self.group, self.plural)

    @property
    def storage(self) -> Version:
        return self.versions[self.storage_version]

    def gvk(self, version: str) -> GroupVersionKind:
        return GroupVersionKind(self.group, version, self.kind)

    def api_version(self, version: str) -> str:
        return self.gvk(version).api_version

    def subresources(self, version: str) -> list[Subresource]:
        """All subresources of a version, by name."""
        typed, verbs = self.versions[version], ("get", "patch", "update")
        found = list(self.strategy.subresources)
        if typed.has_status:
            found.append(Subresource("status", self.gvk(version), verbs))
        if typed.scale:
            found.append(Subresource("scale", SCALE, verbs))
        return sorted(found)
