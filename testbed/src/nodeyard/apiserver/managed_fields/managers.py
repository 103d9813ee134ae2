"""Entries of metadata.managedFields: the fields of each manager.

An entry is the plain object of the API, with its fields as a `FieldSet`. Writes with the same `Identity` share an
entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from nodeyard.apiserver.managed_fields.fieldset import FieldSet, difference, union
from nodeyard.kube.goformat import plain_json, quote
from nodeyard.kube.json import Object

APPLY, UPDATE = "Apply", "Update"
UNKNOWN_MANAGER = "unknown"
ANCIENT_MANAGER = "ancient-changes"
MAX_UPDATERS = 10
"""If there are more update entries, the oldest are merged into one."""


class Identity(NamedTuple):
    manager: str
    operation: str
    api_version: str
    """Empty for Apply: an applier has one entry for all versions."""
    subresource: str

    def text(self) -> str:
        """Return the form by which entries of equal time are ordered."""
        members = [
            ("manager", self.manager),
            ("operation", self.operation),
            ("apiVersion", self.api_version),
            ("subresource", self.subresource),
        ]
        return f"{{{','.join(f'{quote(name)}:{plain_json(value)}' for name, value in members if value)}}}"

    def __str__(self) -> str:
        """Format as conflicts name a manager."""
        text = quote(self.manager)
        if self.subresource:
            text += f" with subresource {quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


Managers: TypeAlias = Mapping[Identity, Object]


def identity_of(entry: Object) -> Identity:
    operation = entry.get("operation", "")
    return Identity(
        entry.get("manager", ""),
        operation,
        "" if operation == APPLY else entry.get("apiVersion", ""),
        entry.get("subresource", ""),
    )


def updater(manager: str, api_version: str, subresource: str) -> Identity:
    return Identity(manager or UNKNOWN_MANAGER, UPDATE, api_version, subresource)


def applier(manager: str, subresource: str) -> Identity:
    return Identity(manager or UNKNOWN_MANAGER, APPLY, "", subresource)


def managers_of(entries: Iterable[Object] | None) -> dict[Identity, Object]:
    return {identity_of(entry): entry for entry in entries or ()}


def new_entry(identity: Identity, api_version: str, fields: FieldSet, time: str | None) -> Object:
    """Make an entry, with its members in the order of the API."""
    entry: Object = {"manager": identity.manager} if identity.manager else {}
    entry.update(operation=identity.operation, apiVersion=api_version)
    if time is not None:
        entry["time"] = time
    entry.update(fieldsType="FieldsV1", fieldsV1=fields)
    if identity.subresource:
        entry["subresource"] = identity.subresource
    return entry


def fields_of(entry: Object) -> FieldSet:
    fields: FieldSet = entry.get("fieldsV1") or {}
    return fields


def with_fields(entry: Object, fields: FieldSet) -> Object:
    return entry if fields is fields_of(entry) else {**entry, "fieldsV1": fields}


def remove_fields(managers: Managers, lost: FieldSet, *, but: Identity | None = None) -> dict[Identity, Object]:
    """Remove these fields from all entries except that of `but`; drop entries without fields."""
    result = {}
    for identity, entry in managers.items():
        kept = entry if identity == but else with_fields(entry, difference(fields_of(entry), lost))
        if fields_of(kept):
            result[identity] = kept
    return result


def entries_of(managers: Managers) -> list[Object]:
    """Return the entries in stored order: appliers first, then by time, then by name."""
    return sorted(managers.values(), key=_place)


def _place(entry: Object) -> tuple[str, str, str, str, str]:
    return (
        entry.get("operation", ""),
        entry.get("time") or "",
        entry.get("manager", ""),
        entry.get("apiVersion", ""),
        entry.get("subresource", ""),
    )


def cap(managers: dict[Identity, Object]) -> dict[Identity, Object]:
    """Limit update entries to `MAX_UPDATERS` by merging the oldest of each version into one."""
    updaters = [identity for identity in managers if identity.operation == UPDATE]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return managers
    updaters.sort(key=lambda identity: (managers[identity].get("time") or "", identity.text()))
    result = dict(managers)
    first_of: dict[str, Identity] = {}
    for identity in updaters:
        if excess <= 0:
            break
        version = identity.api_version
        if version not in first_of:
            first_of[version] = identity
            continue
        bucket = Identity(ANCIENT_MANAGER, UPDATE, version, "")
        if bucket not in result:
            result[bucket] = result.pop(first_of[version])
        merged = union(fields_of(managers[identity]), fields_of(result[bucket]))
        result.pop(identity)
        result[bucket] = new_entry(bucket, version, merged, managers[identity].get("time"))
        excess -= 1
    return result
