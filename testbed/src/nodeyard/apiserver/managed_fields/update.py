"""Ownership after a create, update or patch: the writer owns the fields that it changed.

The changed fields are added to the writer's entry of operation Update and removed from all others; removed fields are
dropped from all. A write that changes nothing leaves every entry as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from datetime import datetime

from nodeyard.apiserver.kinds.go_zero import is_built_in, zero_object
from nodeyard.apiserver.managed_fields.codec import ManagedFieldsError, decode_entries, is_reset
from nodeyard.apiserver.managed_fields.compare import compare
from nodeyard.apiserver.managed_fields.fieldset import FieldSet, difference, field_set, union
from nodeyard.apiserver.managed_fields.managers import (
    Identity,
    cap,
    entries_of,
    fields_of,
    managers_of,
    new_entry,
    remove_fields,
    updater,
)
from nodeyard.apiserver.managed_fields.paths import field
from nodeyard.apiserver.managed_fields.scope import ResetFields, Scope
from nodeyard.apiserver.managed_fields.type_shape import ShapeError
from nodeyard.kube.json import Json, Object, json_equal
from nodeyard.schema.model import Schema

_SERVER_METADATA = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
UNOWNED: FieldSet = field_set(
    (field("apiVersion"),),
    (field("kind"),),
    (field("metadata"),),
    *((field("metadata"), field(name)) for name in _SERVER_METADATA),
)
"""Fields that nobody owns."""


def update(
    schema: Schema,
    live: Object | None,
    new: Object,
    *,
    manager: str,
    api_version: str,
    now: datetime,
    subresource: str = "",
    reset: ResetFields = (),
) -> Object:
    """Set the managedFields of `new`; `live` is None on creation.

    Never fails: an object with a list item without valid key loses its managedFields, and validation reports why.
    """
    scope = Scope(schema, api_version, manager, now, subresource, reset)
    recorded = _recorded(scope, live, new)
    is_untracked = not recorded and live is not None and bool(live["metadata"].get("uid"))
    if is_untracked:
        return with_entries(new, None)
    try:
        managers = update_managers(scope, live, new, recorded)
    except ShapeError:
        return with_entries(new, None)
    return with_entries(new, _entries(live, managers))


def update_managers(
    scope: Scope, live: Object | None, new: Object, recorded: Mapping[Identity, Object]
) -> dict[Identity, Object]:
    """Return the managers after the writer changed `live` to `new`."""
    kind = new.get("kind", "")
    managers = scope.current(kind, recorded)
    old = live if live is not None else zero_object(scope.api_version, kind)
    comparison = compare(scope.shape, old, _aligned(new, old)).excluding(scope.reset_fields)
    if comparison.is_same:
        return managers
    gained = comparison.gained
    managers = remove_fields(managers, union(gained, comparison.removed))
    gained = difference(gained, UNOWNED)
    if gained:
        identity = updater(scope.manager, scope.api_version, scope.subresource)
        previous = managers.get(identity)
        fields = union(fields_of(previous), gained) if previous else gained
        managers[identity] = new_entry(identity, scope.api_version, fields, scope.time)
    return cap(managers)


def _recorded(scope: Scope, live: Object | None, new: Object) -> dict[Identity, Object]:
    """Return the entries to start from: those of the request if they are valid and it is not for a subresource."""
    current = managed_fields(live)
    given = managed_fields(new)
    if scope.subresource or given is None or given is current or given == current:
        return managers_of(current)
    if is_reset(given, is_built_in=is_built_in(scope.api_version, new.get("kind", ""))):
        return {}
    try:
        return decode_entries(given) or managers_of(current)
    except ManagedFieldsError:
        return managers_of(current)


def _entries(live: Object | None, managers: Mapping[Identity, Object]) -> Json:
    """Return the list of entries; the live one itself if it is equal."""
    entries = entries_of(managers)
    current = managed_fields(live)
    is_kept = bool(current) and len(current) == len(entries) and all(map(operator.is_, current, entries))
    return current if is_kept else entries


def managed_fields(obj: Object | None) -> Json:
    return obj["metadata"].get("managedFields") if obj is not None and isinstance(obj.get("metadata"), dict) else None


def with_entries(obj: Object, entries: Json) -> Object:
    """Replace the managedFields of an object."""
    metadata = obj.get("metadata") or {}
    if not entries:
        if "managedFields" not in metadata:
            return obj
        return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}
    if metadata.get("managedFields") is entries:
        return obj
    return {**obj, "metadata": {**metadata, "managedFields": entries}}


def _aligned(new: Object, old: Object) -> Object:
    """Set the managedFields of `old`, so that they do not count as a change."""
    return with_entries(new, managed_fields(old))


def keep_times(old: Object, new: Object) -> Object:
    """Restore the times of `old` if nothing else differs: a write that changes nothing but a time shall not count.

    The last step before the store.
    """
    before, after = managed_fields(old), managed_fields(new)
    if not before or not after or before is after or len(before) != len(after):
        return new
    if not all(_is_alike(entry, other) for entry, other in zip(before, after, strict=True)):
        return new
    restored = with_entries(new, before)
    return restored if json_equal(restored, old) else new


def _is_alike(entry: Object, other: Object) -> bool:
    return entry is other or {**entry, "time": None} == {**other, "time": None}
