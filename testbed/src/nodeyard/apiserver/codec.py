"""Decoding and validation of objects by their kind.

Built-in kinds are Go types on the real server: decoding refuses wrong types and fills in defaults, and the strategy
validates. Custom resources follow the schema of their CRD; only their metadata is a built-in type.
"""

from __future__ import annotations

from nodeyard.apiserver.cel.cost import Budget
from nodeyard.apiserver.crds.defaults import default as schema_default
from nodeyard.apiserver.kinds.go_struct import MalformedError, decode
from nodeyard.apiserver.kinds.table import definition_of
from nodeyard.apiserver.resources import GroupVersionKind, Resource
from nodeyard.apiserver.scale import count_faults
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Json, Object
from nodeyard.schema import validate as validation
from nodeyard.schema.prune import prune as schema_prune

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class UnreadableError(ValueError):
    """The object does not fit its type. The text is part of the 400."""


def read(resource: Resource, version: str, obj: Object) -> tuple[Object, list[str]]:
    """Return the object without unknown fields and with defaults, and the paths of the unknown fields."""
    if resource.is_custom:
        return _read_custom(resource, version, obj)
    definition = definition_of(resource.group, version, resource.kind)
    assert definition is not None, f"{resource.kind} is not in the table of built-in types"
    try:
        decoded = decode(definition, obj)
    except MalformedError as fault:
        raise UnreadableError(str(fault)) from fault
    return _with_reset(resource.strategy.default(decoded.object), obj), decoded.unknown


def read_unstored(kind: GroupVersionKind, body: Object) -> Object:
    """Decode a kind that is never stored: options, reviews, a Scale."""
    definition = definition_of(*kind)
    assert definition is not None, f"{kind.kind} is not in the table of built-in types"
    try:
        return decode(definition, body).object
    except MalformedError as fault:
        raise UnreadableError(str(fault)) from fault


def _with_reset(decoded: Object, given: Object) -> Object:
    """Keep an empty managedFields, which resets ownership; decoding drops empty lists."""
    metadata = given.get("metadata")
    if not metadata or metadata.get("managedFields") != []:
        return decoded
    return {**decoded, "metadata": {**decoded["metadata"], "managedFields": []}}


def _read_custom(resource: Resource, version: str, obj: Object) -> tuple[Object, list[str]]:
    schema = resource.versions[version].schema
    try:
        pruned, unknown = schema_prune(schema, obj, _read_metadata)
    except ValueError as fault:
        raise UnreadableError(str(fault)) from fault
    return schema_default(schema, pruned), unknown


def _read_metadata(metadata: Json) -> tuple[Object, list[str]]:
    decoded = decode(_OBJECT_META, metadata)
    return decoded.object, decoded.unknown


def validate(
    resource: Resource,
    version: str,
    obj: Object,
    old: Object | None,
    warnings: list[str],
    *,
    is_status: bool = False,
    budget: Budget | None = None,
) -> list[FieldError]:
    """Validate a custom resource by its schema and CEL rules.

    A rule that the object violated before and violates still is only a warning. The rules are paid from the
    budget; CostlyError if it is a trial and they need more.
    """
    if not resource.is_custom:
        return []
    typed = resource.versions[version]
    if is_status and old is not None:
        faults = validation.validate_status(typed.schema, obj, old)
    else:
        faults = validation.validate(typed.schema, obj, old)
    if typed.scale is not None:
        faults += count_faults(obj, typed.scale)
    if not typed.rules:
        return faults
    blocked = validation.blocked_rules_error(faults)
    return [*faults, blocked] if blocked else faults + typed.rules.evaluate(obj, old, warnings, budget)
