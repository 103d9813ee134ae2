"""Key, uid and resourceVersion of an object, read alike from a struct and from a plain dict.

Resource versions are compared as whole numbers, which Kubernetes guarantees for the versions of one resource. Versions
that are not numbers, from some aggregated API servers, can only be equal or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Key: TypeAlias = tuple[str, str]
"""Namespace and name; the namespace of a cluster-scoped object is empty."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Accessors of the identity of the objects of one cache."""

    key: Callable[[Any], Key]
    version: Callable[[Any], str]
    uid: Callable[[Any], str]
    labels: Callable[[Any], Mapping[str, str]]


def identity_of(type: type[Any]) -> Identity:
    return _DICT if type is dict else _STRUCT


def is_at_least(version: str, other: str) -> bool:
    """Return True if a resourceVersion is this one or later; False if they cannot be compared."""
    if not version or not other:
        return False
    if version == other:
        return True
    try:
        return int(version) >= int(other)
    except ValueError:
        return False


def _struct_key(obj: Any) -> Key:
    metadata = obj.metadata
    return metadata.namespace, metadata.name


def _dict_key(obj: Any) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


_STRUCT = Identity(
    _struct_key,
    lambda obj: obj.metadata.resource_version,
    lambda obj: obj.metadata.uid,
    lambda obj: obj.metadata.labels,
)
_DICT = Identity(
    _dict_key,
    lambda obj: obj["metadata"].get("resourceVersion", ""),
    lambda obj: obj["metadata"].get("uid", ""),
    lambda obj: obj["metadata"].get("labels") or {},
)
