"""Validation of x-kubernetes-list-type and x-kubernetes-list-map-keys."""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.kube.fields import FieldError, FieldErrorType, child, forbidden, invalid, key, required
from nodeyard.kube.json import Json, Object

_LIST_TYPE = "x-kubernetes-list-type"
_KEYS = "x-kubernetes-list-map-keys"


def list_faults(node: Object, path: str) -> Iterator[FieldError]:
    list_type, items = node.get(_LIST_TYPE), node.get("items")
    yield from _type_faults(node, path)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        words = 'supported values: "atomic", "set", "map"'
        yield FieldError(FieldErrorType.NOT_SUPPORTED, child(path, _LIST_TYPE), list_type, words)
    if node.get(_KEYS) and list_type != "map":
        words = "must be map if x-kubernetes-list-map-keys is non-empty"
        place = child(path, _LIST_TYPE)
        yield required(place, words) if list_type is None else invalid(place, list_type, words)
    if list_type == "map":
        yield from _map_faults(node, items, path)
    if list_type in ("set", "map") and isinstance(items, dict):
        yield from _null_faults(node, items, path)


def _type_faults(node: Object, path: str) -> Iterator[FieldError]:
    list_type, type_, items = node.get(_LIST_TYPE), node.get("type") or "", node.get("items")
    if list_type is None:
        return
    if type_ != "array":
        words = "must be array if x-kubernetes-list-type is specified"
        yield invalid(child(path, "type"), type_, words) if type_ else required(child(path, "type"), words)
    elif list_type == "set" and isinstance(items, dict):
        words = "must be atomic as item of a list with x-kubernetes-list-type=set"
        inner = items.get(_LIST_TYPE)
        if items.get("type") == "array" and inner not in (None, "atomic"):
            yield invalid(child(child(path, "items"), _LIST_TYPE), inner, words)
        if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
            yield invalid(child(child(path, "items"), "x-kubernetes-map-type"), inner, words)


def _map_faults(node: Object, items: Json, path: str) -> Iterator[FieldError]:
    keys = node.get(_KEYS) or []
    if not keys:
        yield required(child(path, _KEYS), "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield required(child(path, "items"), "must have a schema if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        return
    if items.get("type") != "object":
        words = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(child(child(path, "items"), "type"), items.get("type") or "", words)
        return
    properties = items.get("properties") or {}
    for position, name in enumerate(keys):
        if name not in properties:
            yield invalid(child(path, _KEYS), keys, "entries must all be names of item properties")
        elif properties[name].get("type") in ("array", "object"):
            place = child(_key_path(path, name), "type")
            yield invalid(place, items["type"], "must be a scalar type if parent array's x-kubernetes-list-type is map")
        if name in keys[:position]:
            yield invalid(child(path, _KEYS), keys, "must not contain duplicate entries")


def _null_faults(node: Object, items: Object, path: str) -> Iterator[FieldError]:
    """Check that items are not nullable, and that each key is required or has a default."""
    list_type = node[_LIST_TYPE]
    if items.get("nullable"):
        words = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield forbidden(child(child(path, "items"), "nullable"), words)
    if list_type != "map":
        return
    always = items.get("required") or ()
    properties = items.get("properties") or {}
    for name in node.get(_KEYS) or ():
        if name not in properties:
            continue
        place = _key_path(path, name)
        if name not in always and properties[name].get("default") is None:
            words = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield required(child(place, "default"), words)
        if properties[name].get("nullable"):
            words = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield forbidden(child(place, "nullable"), words)


def _key_path(path: str, name: str) -> str:
    return key(child(child(path, "items"), "properties"), name)
