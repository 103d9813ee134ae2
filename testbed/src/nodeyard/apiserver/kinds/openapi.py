"""OpenAPI v3 schemas of the built-in types, for `kubectl explain`, client-side validation and SDKs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from nodeyard.apiserver.kinds.descriptions import COMMON, FIELDS, KINDS
from nodeyard.apiserver.kinds.table import definitions
from nodeyard.kube.json import Object

_PREFIX = "#/components/schemas/"
_OURS = ("always", "go", "inlined", "pointers")

# Served with every group version, beside the types that its kinds refer to.
_EVERYWHERE = (
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
)


def reference(definition: str) -> Object:
    return {"$ref": _PREFIX + definition}


@cache
def openapi_schemas(group: str, version: str) -> Object:
    """Return `components.schemas` of one group version: its kinds and all types that they refer to."""
    roots = [name for name, facts in definitions().items() if _is_of(facts, group, version)]
    names = _closure([*roots, *_EVERYWHERE])
    return {name: openapi_schema(name) for name in sorted(names)}


@cache
def openapi_schema(definition: str) -> Object:
    """Return one definition in published form."""
    facts = {key: value for key, value in definitions()[definition].items() if key not in _OURS}
    published: Object = _publish(facts)
    texts = dict(FIELDS.get(definition, {}))
    if "x-kubernetes-group-version-kind" in facts:
        texts = {**COMMON, **texts}
    for field, prop in published.get("properties", {}).items():
        if field in texts:
            prop["description"] = texts[field]
    if definition in KINDS:
        published["description"] = KINDS[definition]
    return published


def _is_of(facts: Object, group: str, version: str) -> bool:
    served = facts.get("x-kubernetes-group-version-kind", ())
    return any(gvk["group"] == group and gvk["version"] == version for gvk in served)


def _closure(roots: Iterable[str]) -> set[str]:
    found: set[str] = set()
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(_references(definitions()[name].get("properties", {}).values()))
    return found


def _references(props: Iterable[Object]) -> Iterator[str]:
    for prop in props:
        for entry in (prop, prop.get("items"), prop.get("additionalProperties")):
            if entry and (name := entry.get("ref") or entry.get("$ref")):
                yield name


def _publish(facts: Any) -> Any:
    """Write references in their long form; leave everything else as it is in the table."""
    published: Object = {}
    for key, value in facts.items():
        if key == "properties":
            published[key] = {name: _publish(prop) for name, prop in value.items()}
        elif key in ("items", "additionalProperties"):
            published[key] = _publish(value)
        elif key == "ref":
            published["allOf"] = [{"$ref": _PREFIX + value}]
        elif key == "$ref":
            published[key] = _PREFIX + value
        else:
            published[key] = value
    return published
