"""Validation of ObjectMeta."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from nodeyard.apiserver.resources import GroupResource, Resource
from nodeyard.kube.fields import (
    FieldError,
    child,
    forbidden,
    index,
    invalid,
    required,
    too_long,
)
from nodeyard.kube.json import Object
from nodeyard.kube.names import label_faults, label_value_faults, qualified_name_faults

ANNOTATIONS_MAX = 256 * 1024
MANAGER_MAX = 128
IMMUTABLE = "field is immutable"

_PATH = "metadata"
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
# Built-in kinds whose finalizers the real server does not validate, by group or as a resource.
_FREE_FINALIZERS = (
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "coordination.k8s.io",
    GroupResource("", "events"),
    GroupResource("policy", "poddisruptionbudgets"),
)

Faults = Callable[[str], list[str]]


def create_faults(resource: Resource, obj: Object) -> list[FieldError]:
    """Validate the metadata of a new object."""
    metadata = obj.get("metadata") or {}
    errors = name_errors(metadata, resource.strategy.validate_name)
    errors += _namespace_errors(metadata, resource.namespaced)
    generation = metadata.get("generation") or 0
    if generation < 0:
        errors.append(invalid("metadata.generation", generation, "must be greater than or equal to 0"))
    return errors + _content_errors(metadata) + _kube_finalizer_errors(resource, metadata)


def update_faults(resource: Resource, new: Object, old: Object) -> list[FieldError]:
    """Validate the metadata of a changed object."""
    metadata, before = new.get("metadata") or {}, old.get("metadata") or {}
    errors = _content_errors(_changed(metadata, before))
    if before.get("deletionTimestamp"):
        errors += _new_finalizer_errors(metadata, before)
    if (metadata.get("generation") or 0) < (before.get("generation") or 0):
        errors.append(invalid("metadata.generation", metadata.get("generation") or 0, "must not be decremented"))
    for field in _IMMUTABLE:
        if metadata.get(field) != before.get(field):
            errors.append(invalid(child(_PATH, field), metadata.get(field), IMMUTABLE))
    return errors + _kube_finalizer_errors(resource, metadata)


def _changed(metadata: Mapping[str, Any], before: Mapping[str, Any]) -> Mapping[str, Any]:
    """The changed fields; unchanged ones were validated before."""
    return {field: value for field, value in metadata.items() if value != before.get(field)}


def distinct_owners(obj: Object) -> tuple[Object, list[str]]:
    """Return the object without duplicate ownerReferences, and the uids of the duplicates."""
    owners = (obj.get("metadata") or {}).get("ownerReferences") or ()
    if len(owners) < 2:
        return obj, []
    distinct: dict[bytes, Object] = {}
    repeated: list[str] = []
    for owner in owners:
        written = msgspec.json.encode(owner, order="sorted")
        if written in distinct:
            repeated.append(owner.get("uid", ""))
        else:
            distinct[written] = owner
    if not repeated:
        return obj, []
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": list(distinct.values())}}, repeated


def name_errors(metadata: Mapping[str, Any], faults: Faults, path: str = _PATH) -> list[FieldError]:
    errors: list[FieldError] = []
    prefix, name = metadata.get("generateName"), metadata.get("name")
    if prefix:
        errors += [invalid(child(path, "generateName"), prefix, fault) for fault in faults(_without_dash(prefix))]
    if not name:
        errors.append(required(child(path, "name"), "name or generateName is required"))
    else:
        errors += [invalid(child(path, "name"), name, fault) for fault in faults(name)]
    return errors


def _without_dash(prefix: str) -> str:
    """Replace a trailing dash, which the generated suffix follows."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def _namespace_errors(metadata: Mapping[str, Any], is_namespaced: bool) -> list[FieldError]:
    namespace = metadata.get("namespace")
    if not is_namespaced:
        return [forbidden("metadata.namespace", "not allowed on this type")] if namespace else []
    if not namespace:
        return [required("metadata.namespace")]
    return [invalid("metadata.namespace", namespace, fault) for fault in label_faults(namespace)]


def _content_errors(metadata: Mapping[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    if labels := metadata.get("labels"):
        errors += label_errors(labels, "metadata.labels")
    if annotations := metadata.get("annotations"):
        errors += annotation_errors(annotations, "metadata.annotations")
    if owners := metadata.get("ownerReferences"):
        errors += _owner_errors(owners, "metadata.ownerReferences")
    if finalizers := metadata.get("finalizers"):
        errors += _finalizer_errors(finalizers, "metadata.finalizers")
    if managed := metadata.get("managedFields"):
        errors += _managed_field_errors(managed, "metadata.managedFields")
    return errors


def label_errors(labels: Mapping[str, str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in labels.items():
        errors += [invalid(path, key, fault) for fault in qualified_name_faults(key)]
        errors += [invalid(path, value, fault) for fault in label_value_faults(value)]
    return errors


def annotation_errors(annotations: Mapping[str, str], path: str) -> list[FieldError]:
    errors = [invalid(path, key, fault) for key in annotations for fault in qualified_name_faults(key.lower())]
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_MAX:
        errors.append(too_long(path, ANNOTATIONS_MAX))
    return errors


def _owner_errors(owners: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    controller, shown = "", None
    for owner in owners:
        errors += _one_owner_errors(owner, path)
        if not owner.get("controller"):
            continue
        named = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if controller:
            detail = (
                'Only one reference can have Controller set to true. Found "true" in references for '
                f"{controller} and {named}"
            )
            shown = shown or _written(owners)
            errors.append(invalid(path, shown, detail))
        else:
            controller = named
    return errors


def _one_owner_errors(owner: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    api_version = owner.get("apiVersion") or ""
    if not api_version.rpartition("/")[2]:
        errors.append(invalid(child(path, "apiVersion"), api_version, "version must not be empty"))
    for field in ("kind", "name", "uid"):
        if not owner.get(field):
            errors.append(invalid(child(path, field), "", "must not be empty"))
    if api_version == "v1" and owner.get("kind") == "Event":
        errors.append(invalid(path, _written(owner), "/v1, Kind=Event is disallowed from being an owner"))
    return errors


def _written(owners: Object | list[Object]) -> msgspec.Raw:
    """The reference as Go prints the struct."""
    many = owners if isinstance(owners, list) else [owners]
    order = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    ordered = [{field: owner[field] for field in order if field in owner} for owner in many]
    return msgspec.Raw(msgspec.json.encode(ordered if isinstance(owners, list) else ordered[0]))


def _finalizer_errors(finalizers: list[str], path: str) -> list[FieldError]:
    errors = [invalid(path, name, fault) for name in finalizers for fault in qualified_name_faults(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        errors.append(invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"))
    return errors


def _kube_finalizer_errors(resource: Resource, metadata: Mapping[str, Any]) -> list[FieldError]:
    """Most built-in kinds take only qualified finalizers."""
    finalizers = metadata.get("finalizers")
    is_free = resource.is_custom or resource.group in _FREE_FINALIZERS or resource.key in _FREE_FINALIZERS
    if not finalizers or is_free:
        return []
    return [
        invalid(
            index("metadata.finalizers", place),
            name,
            "name is neither a standard finalizer name nor is it fully qualified",
        )
        for place, name in enumerate(finalizers)
        if "/" not in name and name not in _STANDARD_FINALIZERS
    ]


def _new_finalizer_errors(metadata: Mapping[str, Any], before: Mapping[str, Any]) -> list[FieldError]:
    added = sorted(set(metadata.get("finalizers") or ()) - set(before.get("finalizers") or ()))
    if not added:
        return []
    listed = ", ".join(f'"{name}"' for name in added)
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [forbidden("metadata.finalizers", detail)]


def _managed_field_errors(managed: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for place, entry in enumerate(managed):
        where = index(path, place)
        if entry.get("operation") not in ("Apply", "Update"):
            errors.append(invalid(child(where, "operation"), entry.get("operation", ""), "must be `Apply` or `Update`"))
        if entry.get("fieldsType", "FieldsV1") != "FieldsV1":
            errors.append(invalid(child(where, "fieldsType"), entry["fieldsType"], "must be `FieldsV1`"))
        if len(entry.get("manager") or "") > MANAGER_MAX:
            errors.append(too_long(child(where, "manager"), MANAGER_MAX))
    return errors
