"""The internal form of a schema node, which one of kube-apiserver's messages prints in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from nodeyard.kube.goformat import plain_json
from nodeyard.kube.json import Json, Object

AT_ROOT_WITH_STATUS = (
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
)


def internal_names(openapi: Object) -> Iterator[str]:
    """Return the names of the fields that are set, in the order of the type."""
    return (name for name, key, empty, _ in _FIELDS if _is_set(openapi.get(key), empty))


def as_internal(openapi: Object) -> msgspec.Raw:
    """Encode as encoding/json encodes a struct: all fields, in the order of the type."""
    return msgspec.Raw(_node(openapi).encode())


def _is_set(value: Json, empty: Json) -> bool:
    return value is not None and value != empty and value != [] and value != {}


def _node(openapi: Object) -> str:
    return _struct(
        (name, show(openapi[key]) if openapi.get(key) is not None else plain_json(empty))
        for name, key, empty, show in _FIELDS
    )


def _struct(members: Any) -> str:
    return "{" + ",".join(f"{plain_json(name)}:{text}" for name, text in members) + "}"


def _nodes(branches: list[Object]) -> str:
    return f"[{','.join(map(_node, branches))}]" if branches else "null"


def _named(nodes: Object) -> str:
    return _struct((name, _node(nodes[name])) for name in sorted(nodes)) if nodes else "null"


def _items(items: Json) -> str:
    if isinstance(items, list):
        return _struct([("Schema", "null"), ("JSONSchemas", _nodes(items))])
    return _struct([("Schema", _node(items)), ("JSONSchemas", "null")])


def _or_bool(value: Json) -> str:
    if isinstance(value, bool):
        return _struct([("Allows", plain_json(value)), ("Schema", "null")])
    return _struct([("Allows", "true"), ("Schema", _node(value))])


def _documentation(value: Object) -> str:
    return _struct(
        [("Description", plain_json(value.get("description", ""))), ("URL", plain_json(value.get("url", "")))]
    )


def _rules(rules: list[Object]) -> str:
    keys = (("Rule", "rule", ""), ("Message", "message", ""), ("MessageExpression", "messageExpression", ""))
    more = (("Reason", "reason", None), ("FieldPath", "fieldPath", ""), ("OptionalOldSelf", "optionalOldSelf", None))
    shown = (_struct((name, plain_json(rule.get(key, empty))) for name, key, empty in keys + more) for rule in rules)
    return f"[{','.join(shown)}]" if rules else "null"


_FIELDS: tuple[tuple[str, str, Json, Callable[[Any], str]], ...] = (
    ("ID", "id", "", plain_json),
    ("Schema", "$schema", "", plain_json),
    ("Ref", "$ref", None, plain_json),
    ("Description", "description", "", plain_json),
    ("Type", "type", "", plain_json),
    ("Nullable", "nullable", False, plain_json),
    ("Format", "format", "", plain_json),
    ("Title", "title", "", plain_json),
    ("Default", "default", None, plain_json),
    ("Maximum", "maximum", None, plain_json),
    ("ExclusiveMaximum", "exclusiveMaximum", False, plain_json),
    ("Minimum", "minimum", None, plain_json),
    ("ExclusiveMinimum", "exclusiveMinimum", False, plain_json),
    ("MaxLength", "maxLength", None, plain_json),
    ("MinLength", "minLength", None, plain_json),
    ("Pattern", "pattern", "", plain_json),
    ("MaxItems", "maxItems", None, plain_json),
    ("MinItems", "minItems", None, plain_json),
    ("UniqueItems", "uniqueItems", False, plain_json),
    ("MultipleOf", "multipleOf", None, plain_json),
    ("Enum", "enum", None, plain_json),
    ("MaxProperties", "maxProperties", None, plain_json),
    ("MinProperties", "minProperties", None, plain_json),
    ("Required", "required", None, plain_json),
    ("Items", "items", None, _items),
    ("AllOf", "allOf", None, _nodes),
    ("OneOf", "oneOf", None, _nodes),
    ("AnyOf", "anyOf", None, _nodes),
    ("Not", "not", None, _node),
    ("Properties", "properties", None, _named),
    ("AdditionalProperties", "additionalProperties", None, _or_bool),
    ("PatternProperties", "patternProperties", None, _named),
    ("Dependencies", "dependencies", None, plain_json),
    ("AdditionalItems", "additionalItems", None, _or_bool),
    ("Definitions", "definitions", None, _named),
    ("ExternalDocs", "externalDocs", None, _documentation),
    ("Example", "example", None, plain_json),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None, plain_json),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False, plain_json),
    ("XIntOrString", "x-kubernetes-int-or-string", False, plain_json),
    ("XListMapKeys", "x-kubernetes-list-map-keys", None, plain_json),
    ("XListType", "x-kubernetes-list-type", None, plain_json),
    ("XMapType", "x-kubernetes-map-type", None, plain_json),
    ("XValidations", "x-kubernetes-validations", None, _rules),
)
