"""YAML as Kubernetes reads it: documents of plain JSON values, dates left as the strings they are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import yaml

from nodeyard.kube.gotext import number
from nodeyard.kube.json import Json, Object

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Loader(_Base):  # type: ignore[misc]
    """Without timestamps (JSON has none), and without YAML 1.1's `=`; keys are text, whatever they look like."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        if all(key.__class__ is str for key in mapping):
            return mapping
        return {_key(key): value for key, value in mapping.items()}


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":value"))]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}


DEEPEST = 1000
"""Levels; a tree that is much deeper overflows the stack of the process."""


class ManifestError(ValueError):
    """Not YAML, or not what a manifest can be."""


def _key(value: Any) -> str:
    """A key as Kubernetes writes it in JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return str(value)
    if isinstance(value, float):
        return number(value) if math.isfinite(value) else {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan")
    raise ManifestError(f"unsupported map key: {value}")


def _is_too_deep(text: str | bytes) -> bool:
    """By its events alone: building a tree of it would recurse in C, without a limit. Reads no further than it must."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            return True
    return False


def _refuse_depth(text: str | bytes) -> None:
    """What could be deep is looked through first; most is not, and tells so by its brackets, dashes and margins."""
    content = text if isinstance(text, bytes) else text.encode()
    brackets = content.count(b"[") + content.count(b"{")
    margin = max((len(line) - len(line.lstrip(b" -?:")) for line in content.splitlines()), default=0)
    if brackets + margin > DEEPEST and _is_too_deep(text):
        raise ManifestError(f"nested more than {DEEPEST} levels deep")


def load(text: str | bytes) -> Json:
    """One document."""
    try:
        _refuse_depth(text)
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(str(error)) from error


def load_first(text: str | bytes) -> Json:
    """The first document, and no look at what follows it; None where there is none."""
    try:
        _refuse_depth(text)
        return next(yaml.load_all(text, Loader=_Loader), None)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(str(error)) from error


def load_all(text: str | bytes) -> Iterator[Object]:
    """Every object of a file; empty documents are passed over and Lists taken apart."""
    try:
        _refuse_depth(text)
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
