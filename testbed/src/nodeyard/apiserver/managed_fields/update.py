"""Ownership after a create, an update or a patch: who changes a field owns it from then on.

The writer gets an entry of operation Update with what changed, in addition to what it had; everyone else loses those
fields, and fields that are gone are nobody's. A write that changes nothing leaves every entry as it is.
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
"""Fields that no entry ever names."""


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
    """`new` with the managedFields it shall have; `live` is None for a create.

    Never refuses: an object whose list items cannot be told apart loses its managedFields, and validation will say why.
    """
    scope = Scope(schema, api_version, manager, now, subresource, reset)
    standing = _standing(scope, live, new)
    is_untracked = not standing and live is not None and bool(live["metadata"].get("uid"))
    if is_untracked:
        return with_entries(new, None)
    try:
        managers = update_managers(scope, live, new, standing)
    except ShapeError:
        return with_entries(new, None)
    return with_entries(new, _entries(live, managers))


def update_managers(
    scope: Scope, live: Object | None, new: Object, standing: Mapping[Identity, Object]
) -> dict[Identity, Object]:
    """Who owns what after the writer made `new` of `live`."""
    kind = new.get("kind", "")
    managers = scope.current(kind, standing)
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


def _standing(scope: Scope, live: Object | None, new: Object) -> dict[Identity, Object]:
    """The entries to start from: those in the request, where it is the main endpoint and they can be understood."""
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
    """The list of entries; the live one itself when it says the same."""
    entries = entries_of(managers)
    current = managed_fields(live)
    is_kept = bool(current) and len(current) == len(entries) and all(map(operator.is_, current, entries))
    return current if is_kept else entries


def managed_fields(obj: Object | None) -> Json:
    return obj["metadata"].get("managedFields") if obj is not None and isinstance(obj.get("metadata"), dict) else None


def with_entries(obj: Object, entries: Json) -> Object:
    """The object with these managedFields and no others."""
    metadata = obj.get("metadata") or {}
    if not entries:
        if "managedFields" not in metadata:
            return obj
        return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}
    if metadata.get("managedFields") is entries:
        return obj
    return {**obj, "metadata": {**metadata, "managedFields": entries}}


def _aligned(new: Object, old: Object) -> Object:
    """`new` with the managedFields of `old`, so that they do not count as a change."""
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
