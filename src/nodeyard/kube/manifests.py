"""YAML as Kubernetes reads it: documents of plain JSON values, dates left as the strings they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from nodeyard.kube.json import Json, Object

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Loader(_Base):  # type: ignore[misc]
    """Without timestamps (JSON has none), and without YAML 1.1's `=`."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":value"))]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}


class ManifestError(ValueError):
    """Not YAML, or not what a manifest can be."""


def load(text: str | bytes) -> Json:
    """One document."""
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(str(error)) from error


def load_first(text: str | bytes) -> Json:
    """The first document, and no look at what follows it; None where there is none."""
    try:
        return next(yaml.load_all(text, Loader=_Loader), None)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(str(error)) from error


def load_all(text: str | bytes) -> Iterator[Object]:
    """Every object of a file; empty documents are passed over and Lists taken apart."""
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(str(error)) from error
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise ManifestError(f"a manifest is a mapping, this document is a {type(document).__name__}")
        if document.get("kind") == "List":
            yield from document.get("items") or []
        else:
            yield document


def dump(value: Json) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))


def dump_all(values: list[Json]) -> str:
    return str(
        yaml.dump_all(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, explicit_start=True)
    )
