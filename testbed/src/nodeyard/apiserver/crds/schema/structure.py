"""Checks whether a schema is structural.

Every field has a type outside of anyOf, allOf, oneOf and not, which may only restrict values of declared fields. Faults
come from all over the tree and are sorted by text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from nodeyard.kube.fields import FieldError, child, forbidden, index, invalid, key, required
from nodeyard.kube.json import Json, Object
from nodeyard.schema.patterns import PatternError, compile_pattern

Level = Literal["root", "item", "field"]

_UNTYPED = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_IN_METADATA = {"type", "default", "properties"}
# Fields that a branch may not have, and what they must be instead.
_ONLY_OUTSIDE = {
    "type": "empty",
    "default": "undefined",
    "title": "empty",
    "description": "empty",
    "nullable": "false",
    "x-kubernetes-preserve-unknown-fields": "false",
    "x-kubernetes-embedded-resource": "false",
    "x-kubernetes-int-or-string": "false",
    "x-kubernetes-list-map-keys": "empty",
    "x-kubernetes-list-type": "undefined",
    "x-kubernetes-map-type": "undefined",
    "x-kubernetes-validations": "empty",
}


def structure_faults(openapi: Object, path: str) -> list[FieldError]:
    return sorted([*_node(openapi, "root", path), *_undeclared(openapi, openapi, path, path)], key=str)


def _node(node: Object, level: Level, path: str) -> Iterator[FieldError]:
    items, additional = node.get("items"), node.get("additionalProperties")
    if node.get("type") == "array" and items is None:
        yield required(child(path, "items"), "must be specified")
    if items is not None:
        yield from _node(items, "item", child(path, "items"))
    for name, below in (node.get("properties") or {}).items():
        yield from _node(below, "field", key(child(path, "properties"), name))
    if additional is not None and level == "root":
        yield forbidden(child(path, "additionalProperties"), "must not be used at the root")
    if isinstance(additional, dict):
        yield from _node(additional, "field", child(path, "additionalProperties"))
    yield from _extensions(node, path)
    yield from _values(node, path, is_any_of_known=_is_int_or_string(node), is_all_of_known=_is_all_int_or_string(node))
    yield from _type(node, level, path)
    yield from _resource(node, level, path)


def _extensions(node: Object, path: str) -> Iterator[FieldError]:
    if node.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if node.get(name):
                yield invalid(child(path, name), True, "must be false if x-kubernetes-int-or-string is true")


def _type(node: Object, level: Level, path: str) -> Iterator[FieldError]:
    type_ = node.get("type") or ""
    place = child(path, "type")
    if node.get("x-kubernetes-embedded-resource") and type_ != "object":
        words = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(place, type_, words) if type_ else required(place, words)
    elif not type_ and not any(
        node.get(name) for name in ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
    ):
        yield required(place, _UNTYPED[level])
    if level == "root" and type_ and type_ != "object":
        yield invalid(place, type_, "must be object at the root")


def _resource(node: Object, level: Level, path: str) -> Iterator[FieldError]:
    """apiVersion, kind and metadata are the server's own, here and in embedded resources."""
    is_embedded = bool(node.get("x-kubernetes-embedded-resource"))
    properties = node.get("properties") or {}
    if is_embedded and node.get("additionalProperties") is not None:
        words = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(child(path, "additionalProperties"), words)
    if is_embedded and not node.get("x-kubernetes-preserve-unknown-fields") and not properties:
        words = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(child(path, "properties"), words)
    if level == "root" or is_embedded:
        for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
            found = (properties.get(name) or {}).get("type") or ""
            if name in properties and found != wanted:
                yield invalid(child(key(child(path, "properties"), name), "type"), found, f"must be {wanted}")
    if level == "root" and not _is_plain_metadata(properties.get("metadata") or {}):
        words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(key(child(path, "properties"), "metadata"), words)


def _is_plain_metadata(metadata: Object) -> bool:
    if any(value and name not in _IN_METADATA for name, value in metadata.items()):
        return False
    return set(metadata.get("properties") or ()) <= {"name", "generateName"}


# values and branches


def _is_int_or_string(node: Object) -> bool:
    return _non_empty(node.get("anyOf")) == _INT_OR_STRING


def _is_all_int_or_string(node: Object) -> bool:
    branches: list[Object] = node.get("allOf") or []
    return bool(branches) and _is_int_or_string(branches[0])


def _non_empty(branches: Json) -> list[Object]:
    return [{name: value for name, value in branch.items() if value} for branch in branches or ()]


def _values(node: Object, path: str, *, is_any_of_known: bool, is_all_of_known: bool) -> Iterator[FieldError]:
    """`is_..._known`: these branches are the accepted way to say "integer or string", where a type may stand."""
    if not is_any_of_known:
        for position, branch in enumerate(node.get("anyOf") or ()):
            yield from _branch(branch, index(child(path, "anyOf"), position))
    for position, branch in enumerate(node.get("allOf") or ()):
        place = index(child(path, "allOf"), position)
        yield from _branch(branch, place, is_any_of_known=is_all_of_known and position == 0)
    for position, branch in enumerate(node.get("oneOf") or ()):
        yield from _branch(branch, index(child(path, "oneOf"), position))
    if node.get("not") is not None:
        yield from _branch(node["not"], child(path, "not"))
    pattern = node.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except PatternError as error:
            words = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(child(path, "pattern"), pattern, words)


def _branch(node: Object, path: str, *, is_any_of_known: bool = False) -> Iterator[FieldError]:
    yield from _values(node, path, is_any_of_known=is_any_of_known, is_all_of_known=False)
    if node.get("items") is not None:
        yield from _branch(node["items"], child(path, "items"))
    for name, below in (node.get("properties") or {}).items():
        yield from _branch(below, key(child(path, "properties"), name))
    if node.get("additionalProperties"):
        yield forbidden(child(path, "additionalProperties"), "must be undefined to be structural")
    for name, wanted in _ONLY_OUTSIDE.items():
        value = node.get(name)
        if value or (wanted == "undefined" and value is not None):
            yield forbidden(child(path, name), f"must be {wanted} to be structural")
    if "metadata" in (node.get("properties") or {}):
        yield forbidden(key(child(path, "properties"), "metadata"), "must not be specified in a nested context")


# completeness


def _undeclared(restricting: Object, declaring: Object, declared_at: str, restricted_at: str) -> Iterator[FieldError]:
    """Check that fields which branches at the root restrict are declared outside of them."""
    if restricting.get("not") is not None:
        yield from _undeclared_branch(restricting["not"], declaring, declared_at, child(restricted_at, "not"))
    for name in ("allOf", "anyOf", "oneOf"):
        for position, branch in enumerate(restricting.get(name) or ()):
            yield from _undeclared_branch(branch, declaring, declared_at, index(child(restricted_at, name), position))


def _undeclared_branch(
    branch: Object, declaring: Object | None, declared_at: str, restricted_at: str
) -> Iterator[FieldError]:
    if declaring is None:
        yield required(declared_at, f"because it is defined in {restricted_at}")
        return
    yield from _undeclared(branch, declaring, declared_at, restricted_at)
    if branch.get("items") is not None:
        yield from _undeclared_branch(
            branch["items"], declaring.get("items"), child(declared_at, "items"), child(restricted_at, "items")
        )
    properties = declaring.get("properties") or {}
    for name, below in (branch.get("properties") or {}).items():
        places = [key(child(path, "properties"), name) for path in (declared_at, restricted_at)]
        yield from _undeclared_branch(below, properties.get(name), *places)
