"""Reads and validates embedded resources (x-kubernetes-embedded-resource) and object metadata.

apiVersion and kind are required. metadata is decoded into the server's ObjectMeta and encoded again, which refuses
wrong types, prunes unknown fields and drops empty ones. The caller passes the decoder, because this package does not
know the built-in types.
"""

from __future__ import annotations

from collections.abc import Callable

from nodeyard.kube.fields import FieldError, child, index, invalid, key, required, too_long
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import dns_1035_faults, label_faults, label_value_faults, qualified_name_faults
from nodeyard.schema.model import Schema
from nodeyard.schema.tree_walk import Walk, walk_tree

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})

ReadMetadata = Callable[[Json], tuple[Object, list[str]]]
"""Returns metadata as the server encodes it, and the paths of unknown fields. Raises ValueError with Go's message."""

_ANNOTATIONS_MAX = 256 * 1024


class CoercionError(ValueError):
    """Metadata that cannot be decoded; the text is the reason in the 400 response."""


# reading


def read_resource(schema: Schema, obj: Object, read: ReadMetadata) -> tuple[Object, list[str], list[str]]:
    """Decode metadata of an object and of its embedded resources.

    Return the object, the unknown fields of its own metadata, and those of embedded metadata.
    """
    unknown: list[str] = []
    if "metadata" in obj:
        metadata, names = _read(obj["metadata"], read)
        unknown = sorted(f"metadata.{name}" for name in names)
        if metadata is not obj["metadata"]:
            obj = {**obj, "metadata": metadata}
    embedded: list[str] = []
    if walk_tree("embedded", _presence, schema, obj):
        obj = _decode_embedded(schema, obj, "", read, embedded)
    return obj, unknown, sorted(embedded)


def _read(metadata: Json, read: ReadMetadata) -> tuple[Object, list[str]]:
    try:
        return read(metadata)
    except ValueError as error:
        raise CoercionError(str(error)) from error


def _presence(schema: Schema) -> Walk | None:
    """Report each embedded resource. Walks return FieldErrors, so a fault marks it."""
    return (lambda value, path: [required(path)]) if schema.embedded else None


def _decode_embedded(schema: Schema, value: Json, path: str, read: ReadMetadata, unknown: list[str]) -> Json:
    if isinstance(value, list):
        if schema.items is None:
            return value
        return [
            _decode_embedded(schema.items, item, index(path, place), read, unknown) for place, item in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    result = dict(value)
    for name, item in value.items():
        if schema.embedded and name in META_FIELDS:
            result[name] = _decode_meta(name, item, child(path, name), read, unknown)
        elif name in schema.properties:
            result[name] = _decode_embedded(schema.properties[name], item, child(path, name), read, unknown)
        elif schema.additional is not None:
            result[name] = _decode_embedded(schema.additional, item, key(path, name), read, unknown)
    return result


def _decode_meta(name: str, value: Json, path: str, read: ReadMetadata, unknown: list[str]) -> Json:
    if name != "metadata":
        if not isinstance(value, str):
            raise CoercionError(str(invalid(path, value, "must be a string")))
        return value
    try:
        metadata, names = read(value)
    except ValueError as error:
        raise CoercionError(str(invalid(path, value, str(error)))) from error
    unknown.extend(f"{path}.{each}" for each in names)
    return metadata


# validation


def embedded_faults(schema: Schema, value: Json, path: str = "") -> list[FieldError]:
    """Return the faults of every embedded resource, not of the object around them."""
    return walk_tree("embedded faults", _node_check, schema, value, path)


def _node_check(schema: Schema) -> Walk | None:
    return _resource_faults if schema.embedded else None


def _resource_faults(value: Json, path: str) -> list[FieldError]:
    if not isinstance(value, dict):
        return []
    faults = [required(child(path, name)) for name in ("apiVersion", "kind") if name not in value]
    if "apiVersion" in value:
        faults += _api_version_faults(value["apiVersion"], child(path, "apiVersion"))
    if "kind" in value:
        faults += _kind_faults(value["kind"], child(path, "kind"))
    if isinstance(value.get("metadata"), dict):
        faults += _metadata_faults(value["metadata"], child(path, "metadata"))
    return faults


def _api_version_faults(value: Json, path: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [invalid(path, value, "must be a string")]
    if not value:
        return [invalid(path, value, "must not be empty")]
    return [invalid(path, value, f"unexpected GroupVersion string: {value}")] if value.count("/") > 1 else []


def _kind_faults(value: Json, path: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [invalid(path, value, "must be a string")]
    if not value:
        return [invalid(path, value, "must not be empty")]
    found = ",".join(dns_1035_faults(value.lower()))
    return [invalid(path, value, f"may have mixed case, but should otherwise match: {found}")] if found else []


def _metadata_faults(metadata: Object, path: str) -> list[FieldError]:
    """Return the faults of embedded metadata. Names only have to be valid path segments."""
    faults: list[FieldError] = []
    for name in ("generateName", "name"):
        text = metadata.get(name) or ""
        faults += [invalid(child(path, name), text, message) for message in _segment_faults(text, name == "name")]
    namespace = metadata.get("namespace") or ""
    if namespace:
        faults += [invalid(child(path, "namespace"), namespace, message) for message in label_faults(namespace)]
    if (metadata.get("generation") or 0) < 0:
        message = "must be greater than or equal to 0"
        faults.append(invalid(child(path, "generation"), metadata["generation"], message))
    faults += _label_faults(metadata.get("labels") or {}, child(path, "labels"))
    faults += _annotation_faults(metadata.get("annotations") or {}, child(path, "annotations"))
    for owner in metadata.get("ownerReferences") or ():
        faults += _owner_faults(owner, child(path, "ownerReferences"))
    for finalizer in metadata.get("finalizers") or ():
        below = child(path, "finalizers")
        faults += [invalid(below, finalizer, message) for message in qualified_name_faults(finalizer)]
    return faults


def _segment_faults(text: str, is_whole: bool) -> list[str]:
    if is_whole and text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in text]


def _label_faults(labels: Object, path: str) -> list[FieldError]:
    faults: list[FieldError] = []
    for name, value in labels.items():
        faults += [invalid(path, name, message) for message in qualified_name_faults(name)]
        faults += [invalid(path, value, message) for message in label_value_faults(value)]
    return faults


def _annotation_faults(annotations: Object, path: str) -> list[FieldError]:
    faults = [invalid(path, name, message) for name in annotations for message in qualified_name_faults(name.lower())]
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > _ANNOTATIONS_MAX:
        faults.append(too_long(path, _ANNOTATIONS_MAX))
    return faults


def _owner_faults(owner: Object, path: str) -> list[FieldError]:
    version = owner.get("apiVersion") or ""
    faults = []
    if not version.rpartition("/")[2]:
        faults.append(invalid(child(path, "apiVersion"), version, "version must not be empty"))
    for name in ("kind", "name", "uid"):
        if not owner.get(name):
            faults.append(invalid(child(path, name), "", "must not be empty"))
    return faults
