"""Validation of each node of a schema: unsupported fields, and fields that exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from nodeyard.apiserver.crds.schema.lists import list_faults
from nodeyard.apiserver.crds.schema.rules import rule_form_faults
from nodeyard.kube.fields import FieldError, child, forbidden, index, invalid, key, not_supported, required
from nodeyard.kube.json import Object

RuleFaults = Callable[[Object, str, str | None], list[FieldError]]
"""Validates the rules of a node, given its path and that of the uncorrelatable list or map around it."""

_TYPES = ["array", "boolean", "integer", "number", "object", "string"]
_META_FIELDS = ("metadata", "kind", "apiVersion")
_BRANCHES = ("allOf", "oneOf", "anyOf")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


@dataclass(frozen=True, slots=True)
class Place:
    """The path of a node, and the restrictions that follow from it."""

    path: str
    is_root: bool = False
    is_in_metadata: bool = False
    no_defaults: str | None = None
    """Why a default is forbidden here."""
    uncorrelatable: str | None = None
    """The outermost list or map in which old and new values cannot be correlated."""

    def below(self, path: str) -> Place:
        return replace(self, path=path, is_root=False)


Found = tuple[list[FieldError], list[FieldError]]
"""Faults of the schema, and of rules. Rules are not compiled at a node with faults, nor at the nodes around it."""


def node_faults(node: Object, place: Place, rule_faults: RuleFaults | None) -> Found:
    faults = [*_own_faults(node, place), *_exclusion_faults(node, place.path)]
    in_rules: list[FieldError] = []
    for below, place_below, asks_rules in _below(node, place):
        found, found_in_rules = node_faults(below, place_below, rule_faults if asks_rules else None)
        faults += found
        in_rules += found_in_rules
    faults += _map_faults(node, place.path)
    faults += list_faults(node, place.path)
    faults += rule_form_faults(node, place.path)
    if node.get("x-kubernetes-validations") and not faults and rule_faults is not None:
        in_rules += rule_faults(node, place.path, place.uncorrelatable)
    return faults, in_rules


def _own_faults(node: Object, place: Place) -> Iterator[FieldError]:
    path, type_ = place.path, node.get("type") or ""
    if type_ and type_ not in _TYPES:
        yield not_supported(child(path, "type"), type_, _TYPES)
    if node.get("default") is not None and place.no_defaults is not None:
        yield forbidden(child(path, "default"), f"must not be set {place.no_defaults}".rstrip())
    for name in _UNSUPPORTED:
        value = node.get(name)
        if value or (value is not None and name in ("additionalItems", "dependencies", "$ref")):
            yield forbidden(child(path, name), f"{name} is not supported")
    if type_ == "null":
        yield forbidden(child(path, "type"), "type cannot be set to null, use nullable as an alternative")
    if isinstance(node.get("items"), list) and node["items"]:
        yield forbidden(child(path, "items"), "items must be a schema object and not an array")
    if place.is_in_metadata and node.get("x-kubernetes-embedded-resource"):
        yield forbidden(child(path, "x-kubernetes-embedded-resource"), "must not be used inside of resource meta")


def _exclusion_faults(node: Object, path: str) -> Iterator[FieldError]:
    if node.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(child(path, "uniqueItems"), words)
    additional = node.get("additionalProperties")
    if additional is not None and additional is not True and node.get("properties"):
        words = "additionalProperties and properties are mutual exclusive"
        yield forbidden(child(path, "additionalProperties"), words)


def _below(node: Object, place: Place) -> Iterator[tuple[Object, Place, bool]]:
    """Yield the child nodes, their places, and whether their rules are compiled."""
    path = place.path
    if isinstance(node.get("additionalProperties"), dict):
        inner = place.below(child(path, "additionalProperties"))
        if place.is_in_metadata:
            inner = replace(inner, no_defaults="inside additionalProperties applying to object metadata")
        yield node["additionalProperties"], inner, True
    for name, below in (node.get("properties") or {}).items():
        yield below, _property_place(node, name, place), True
    if node.get("not") is not None:
        yield node["not"], place.below(child(path, "not")), False
    for name in _BRANCHES:
        for position, branch in enumerate(node.get(name) or ()):
            yield branch, place.below(index(child(path, name), position)), False
    for name, below in (node.get("definitions") or {}).items():
        yield below, place.below(key(child(path, "definitions"), name)), False
    yield from _items_below(node, place)
    for name, below in (node.get("dependencies") or {}).items():
        if isinstance(below, dict):
            yield below, place.below(key(child(path, "dependencies"), name)), False


def _property_place(node: Object, name: str, place: Place) -> Place:
    inner = place.below(key(child(place.path, "properties"), name))
    if node.get("x-kubernetes-map-type") == "atomic":
        inner = replace(inner, uncorrelatable=place.uncorrelatable or place.path)
    if (place.is_root or node.get("x-kubernetes-embedded-resource")) and name in _META_FIELDS:
        inner = replace(inner, is_in_metadata=True)
        if place.is_root:
            inner = replace(inner, no_defaults=f"in top-level {name}")
    return inner


def _items_below(node: Object, place: Place) -> Iterator[tuple[Object, Place, bool]]:
    items = node.get("items")
    if items is None:
        return
    path = child(place.path, "items")
    uncorrelatable = (
        place.uncorrelatable if node.get("x-kubernetes-list-type") == "map" else place.uncorrelatable or place.path
    )
    inner = replace(place.below(path), uncorrelatable=uncorrelatable)
    if isinstance(items, dict):
        yield items, inner, True
        return
    for position, item in enumerate(items):
        yield item, replace(inner, path=index(path, position)), True


def _map_faults(node: Object, path: str) -> Iterator[FieldError]:
    if node.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(child(path, "x-kubernetes-preserve-unknown-fields"), False, "must be true or undefined")
    map_type, type_ = node.get("x-kubernetes-map-type"), node.get("type") or ""
    if map_type is None:
        return
    if type_ != "object":
        words = "must be object if x-kubernetes-map-type is specified"
        yield invalid(child(path, "type"), type_, words) if type_ else required(child(path, "type"), words)
    if map_type not in ("atomic", "granular"):
        yield not_supported(child(path, "x-kubernetes-map-type"), map_type, ["atomic", "granular"])
