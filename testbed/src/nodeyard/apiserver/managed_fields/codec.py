"""Decoding of managedFields that a client wrote, to their canonical form.

Entries that the server stored are used as they are. Only entries that a client changed, for example to drop one or to
rename a manager, are decoded.
"""

from __future__ import annotations

from nodeyard.apiserver.managed_fields.fieldset import LEAF, FieldSet, ordered
from nodeyard.apiserver.managed_fields.managers import APPLY, UPDATE, Identity, identity_of, new_entry
from nodeyard.apiserver.managed_fields.paths import SELF, PathElementError, canonical
from nodeyard.kube.json import Json, Object
from nodeyard.kube.timestamps import format_rfc3339, parse_rfc3339


class ManagedFieldsError(ValueError):
    """Malformed entries; the text is kube-apiserver's message."""


def decode_entries(entries: Json) -> dict[Identity, Object]:
    """Decode entries by identity; of two with the same identity the later one wins."""
    if not isinstance(entries, list):
        raise ManagedFieldsError("managedFields must be a list")
    decoded = {}
    for position, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise ManagedFieldsError("an entry of managedFields must be an object")
        canonical_entry = _decode_entry(entry, position)
        decoded[identity_of(canonical_entry)] = canonical_entry
    return decoded


def managed_fields_fault(entries: Json) -> str:
    """Return why entries, for example from a webhook, cannot be kept; empty if they can."""
    try:
        decode_entries(entries or [])
    except ManagedFieldsError as fault:
        return str(fault)
    return ""


def is_reset(entries: Json, *, is_built_in: bool) -> bool:
    """True if a client asks to reset managedFields: one empty entry, or for built-in kinds also an empty list."""
    return entries == [{}] or (is_built_in and entries == [])


def _decode_entry(entry: Object, position: int) -> Object:
    if entry.get("operation") not in (APPLY, UPDATE):
        raise ManagedFieldsError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise ManagedFieldsError("apiVersion must not be empty")
    fields_type = entry.get("fieldsType", "")
    if not fields_type:
        raise ManagedFieldsError(f"missing fieldsType in managed fields entry {position}")
    if fields_type != "FieldsV1":
        raise ManagedFieldsError(f'invalid fieldsType "{fields_type}" in managed fields entry {position}')
    fields = decode_fields(entry.get("fieldsV1"))
    return new_entry(identity_of(entry), entry["apiVersion"], fields, _canonical_time(entry.get("time")))


def _canonical_time(time: Json) -> str | None:
    if not isinstance(time, str):
        return None
    try:
        return format_rfc3339(parse_rfc3339(time))
    except ValueError:
        return None


def decode_fields(fields: Json) -> FieldSet:
    """Decode fieldsV1; path elements of unknown types are left out."""
    if fields is None:
        return {}
    return {element: node for element, node in _decode_node(fields).items() if element != SELF}


def _decode_node(node: Json) -> FieldSet:
    if not isinstance(node, dict):
        raise ManagedFieldsError("error decoding set: expected an object")
    below: FieldSet = {}
    for text, child in node.items():
        if text == SELF:
            continue
        try:
            element = canonical(text)
        except PathElementError as fault:
            raise ManagedFieldsError(f"error decoding set: parsing key as path element: {fault}") from fault
        if element is not None:
            below[element] = _decode_node(child)
    if not below:
        return LEAF
    return ordered({SELF: {}, **below} if SELF in node else below)
