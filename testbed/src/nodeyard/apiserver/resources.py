"""The served resources: one `Resource` per kind, built in or of a CRD.

A resource has names, versions and their schemas. Behaviour beyond the schema (defaults, fields that a status write may
change, validation, columns) is its `Strategy`; custom resources use the base class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, NamedTuple

from nodeyard.apiserver.ages import age
from nodeyard.apiserver.cel.rules import CompiledRules
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Json, Object
from nodeyard.schema.model import Schema


class GroupResource(NamedTuple):
    """The key under which objects are stored, in whatever version."""

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
    """The paths of the scale subresource as in a CRD, `.spec.replicas`."""

    spec_path: str
    status_path: str
    selector_path: str = ""


@dataclass(slots=True)
class Version:
    name: str
    schema: Schema
    openapi: Json = None
    """The published OpenAPI v3 schema; built-in kinds share definitions by reference."""
    served: bool = True
    columns: tuple[Column, ...] = ()
    has_status: bool = False
    scale: Scale | None = None
    deprecation: str = ""
    """The text of the Warning header; empty if the version is not deprecated."""
    rules: CompiledRules | None = None
    """The compiled CEL rules of a custom resource."""


class Strategy:
    """The behaviour of a kind. Methods never change objects in place."""

    uses_generation = True
    """True if objects have metadata.generation; Node, Pod (before 1.33), Secret and others do not."""
    allows_unconditional_update = True
    """True if an update without resourceVersion is allowed, as for most built-in kinds."""
    allows_create_on_update = False
    """True if an update creates a missing object."""
    allows_delete_collection = True
    subresources: ClassVar[tuple[Subresource, ...]] = ()
    """Subresources beside status and scale."""
    has_own_field_labels: ClassVar[bool] = False
    """True if the kind lists its field selectors, for which the real server has another error."""

    def default(self, obj: Object) -> Object:
        """Set defaults beyond those of the schema."""
        return obj

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        """Drop fields that a create may not set, such as status."""
        return obj

    def prepare_update(self, new: Object, old: Object) -> Object:
        """Keep fields that an update may not change, such as status."""
        return new

    def prepare_status(self, new: Object, old: Object) -> Object:
        """Keep everything that a write to /status may not change."""
        return new

    def prepare_finalize(self, new: Object, old: Object) -> Object:
        """Keep everything but spec.finalizers, for a write to /finalize, which only namespaces have."""
        return {**old, "metadata": new["metadata"], "spec": new.get("spec") or {}}

    def changes_generation(self, new: Object, old: Object) -> bool:
        """True if this update increments the generation."""
        return False

    def reset_fields(self, subresource: str) -> tuple[tuple[str, ...], ...]:
        """Paths that a write to this endpoint does not change and so does not own."""
        return ()

    def validation_cost(self, obj: Object) -> int:
        """The cost of validation beyond the schema, in units of `cel.cost`; what is costly runs off the event loop."""
        return 0

    def validate_create(self, obj: Object) -> list[FieldError]:
        return []

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return []

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return []

    def validate_name(self, name: str) -> list[str]:
        """Validate metadata.name; the default is a DNS subdomain."""
        from nodeyard.kube.names import subdomain_faults

        return subdomain_faults(name)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        return []

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Selectable fields beyond metadata.name and metadata.namespace."""
        return {}

    def field_labels(self) -> frozenset[str]:
        """The names of `selectable`."""
        return frozenset()

    def unknown_field_label(self, label: str) -> str:
        """The error of a field selector on another field."""
        return f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'

    def prepare_delete(self, obj: Object, now: datetime) -> Object | None:
        """Change an object that is being deleted; None if nothing but its timestamp changes."""
        return None

    def holds(self, obj: Object) -> bool:
        """True if more than metadata.finalizers keeps a deleted object: a namespace's spec.finalizers."""
        return False

    is_graceful = False
    """True if deletion of this kind has a grace period."""
    returns_deleted = False
    """True if an immediate delete answers with the object rather than a Status."""

    def grace_period(self, obj: Object, requested: int | None) -> int:
        """The grace period in seconds; only pods have one."""
        return 0

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        """The cells of a Table row, one per column of the version; by default name and age."""
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
    """The versions in the order of preference."""
    storage_version: str
    strategy: Strategy
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    list_kind: str = ""
    is_custom: bool = False
    selectable_fields: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    """A CRD's selectableFields: dotted path to reader."""
    terminating: bool = False
    """True if the CRD is being deleted: creates are refused, other verbs are served."""

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
