"""Where a write happens: which type, which endpoint of it, and who writes when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeAlias

from nodeyard.apiserver.kinds.go_zero import is_built_in
from nodeyard.apiserver.managed_fields.fieldset import FieldSet, field_set
from nodeyard.apiserver.managed_fields.managers import Identity, fields_of, with_fields
from nodeyard.apiserver.managed_fields.paths import field
from nodeyard.apiserver.managed_fields.schema_drift import caught_up
from nodeyard.apiserver.managed_fields.type_shape import Shape, shape_of
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.schema.model import Schema

ResetFields: TypeAlias = tuple[tuple[str, ...], ...]

_shape = lru_cache(maxsize=512)(shape_of)


@lru_cache(maxsize=512)
def _fields(paths: ResetFields) -> FieldSet:
    return field_set(*(map(field, path) for path in paths))


@dataclass(frozen=True, slots=True)
class Scope:
    """One write to one endpoint.

    `reset` are the fields this endpoint does not write (status on the main one), with all below them. `versions` are
    the other versions of the kind, by apiVersion; entries in a version that is not among them are dropped. Without it
    all versions are taken to be alike.
    """

    schema: Schema
    api_version: str
    manager: str
    now: datetime
    subresource: str = ""
    reset: ResetFields = ()
    versions: Mapping[str, Schema] | None = None

    @property
    def shape(self) -> Shape:
        return _shape(self.schema)

    @property
    def reset_fields(self) -> FieldSet:
        return _fields(self.reset)

    @property
    def time(self) -> str:
        return format_rfc3339(self.now)

    def shape_in(self, api_version: str) -> Shape | None:
        """The shape in another version; None when there is no such version any more."""
        if api_version == self.api_version or self.versions is None:
            return self.shape
        schema = self.versions.get(api_version)
        return None if schema is None else _shape(schema)

    def current(self, kind: str, managers: Mapping[Identity, Object]) -> dict[Identity, Object]:
        """The entries that still mean something, as the schemas of today would have them."""
        known: dict[Identity, Object] = {}
        drifts = not is_built_in(self.api_version, kind)
        for identity, entry in managers.items():
            shape = self.shape_in(entry.get("apiVersion", ""))
            if shape is not None:
                known[identity] = with_fields(entry, caught_up(shape, fields_of(entry))) if drifts else entry
        return known


def group_version_kind(obj: Mapping[str, Any]) -> str:
    """`apps/v1, Kind=Deployment`."""
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    return f"{group}/{version}, Kind={obj.get('kind') or ''}"
