"""A write through a kind's strategy and the Priority admission plugin, without a server around it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from nodeyard.apiserver import errors, metadata
from nodeyard.apiserver.admission.attributes import Attributes, Operation
from nodeyard.apiserver.admission.plugins import Priority
from nodeyard.apiserver.kinds.catalogue import resources
from nodeyard.apiserver.kinds.go_struct import MalformedError, decode
from nodeyard.apiserver.kinds.table import definition_of
from nodeyard.apiserver.resources import Resource
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.worker_thread import WorkerThread
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Json, Object

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UID = "11111111-1111-4111-8111-111111111111"
RESOURCES = {(resource.group, resource.plural): resource for resource in resources()}


def located(path: str) -> tuple[Resource, str]:
    """The resource of a collection's path, and the namespace in it."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    return RESOURCES[group, rest[-1]], rest[1] if len(rest) == 3 else ""


def read(resource: Resource, body: Object, *, is_strict: bool = False) -> Object:
    definition = definition_of(resource.group, "v1", resource.kind)
    assert definition is not None
    prefix = f'{resource.kind} in version "v1" cannot be handled as a {resource.kind}: '
    try:
        decoded = decode(definition, {"apiVersion": resource.api_version("v1"), "kind": resource.kind, **body})
    except MalformedError as fault:
        raise errors.bad_request(f"{prefix}{fault}") from fault
    if is_strict and decoded.unknown:
        named = ", ".join(f'unknown field "{path}"' for path in decoded.unknown)
        raise errors.bad_request(f"{prefix}strict decoding error: {named}")
    return decoded.object


def create(resource: Resource, namespace: str, body: Object, *, is_strict: bool = False) -> Object:
    """Raises ApiError."""
    obj = read(resource, body, is_strict=is_strict)
    given = {**obj["metadata"], "uid": UID, "creationTimestamp": "2026-01-01T00:00:00Z"}
    if resource.namespaced:
        given["namespace"] = namespace
    if resource.strategy.uses_generation:
        given["generation"] = 1
    obj = _with_priority(resource, "CREATE", {**obj, "metadata": given})
    obj = resource.strategy.prepare_create(obj, NOW)
    return _accepted(resource, obj, metadata.create_faults(resource, obj) + resource.strategy.validate_create(obj))


def update(resource: Resource, old: Object, body: Object, *, is_status: bool = False) -> Object:
    """Raises ApiError."""
    strategy = resource.strategy
    obj = read(resource, body)
    kept = ("uid", "creationTimestamp", "namespace", "generation")
    given = {**obj["metadata"], **{name: old["metadata"][name] for name in kept if name in old["metadata"]}}
    obj = {**obj, "metadata": given}
    obj = obj if is_status else _with_priority(resource, "UPDATE", obj, old)
    obj = strategy.prepare_status(obj, old) if is_status else strategy.prepare_update(obj, old)
    if not is_status and strategy.uses_generation and strategy.changes_generation(obj, old):
        obj = {**obj, "metadata": {**obj["metadata"], "generation": given["generation"] + 1}}
    faults = metadata.update_faults(resource, obj, old)
    faults += strategy.validate_status(obj, old) if is_status else strategy.validate_update(obj, old)
    return _accepted(resource, obj, faults)


def _with_priority(resource: Resource, operation: Operation, obj: Object, old: Object | None = None) -> Object:
    name = obj["metadata"].get("name", "")
    attributes = Attributes(
        operation=operation,
        resource=resource,
        version=resource.storage_version,
        subresource="",
        namespace=obj["metadata"].get("namespace", ""),
        name=name,
        object=obj,
        old=old,
        user=User("alice"),
        work=WorkerThread().work(),
    )
    asyncio.run(Priority().mutate(attributes))
    assert attributes.object is not None
    return attributes.object


def _accepted(resource: Resource, obj: Object, faults: list[FieldError]) -> Object:
    if faults:
        raise errors.invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), faults)
    return obj


def made(group: str, plural: str, body: Object) -> Object:
    return create(RESOURCES[group, plural], "default", body)


def changed(group: str, plural: str, old: Object, *, is_status: bool = False, **fields: Any) -> Object:
    return update(RESOURCES[group, plural], old, {**old, **fields}, is_status=is_status)


def cells(group: str, plural: str, obj: Object) -> list[Json]:
    return RESOURCES[group, plural].strategy.cells(obj, NOW)
