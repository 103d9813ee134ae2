"""What a person can say to the loop by annotating a root object: stop, or go ahead.

Roots come from the cache as structs or as plain dicts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from nodeyard.kube.names import APPROVE, PAUSED
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Capability


def is_paused(root: Any) -> bool:
    return annotations_of(root).get(PAUSED) == "true"


def approvals(roots: Sequence[Any]) -> Collection[str]:
    """The ids of held plans that somebody let go."""
    return {id for root in roots for id in approved_on(root)}


def approved_on(root: Any) -> list[str]:
    """In the order in which they stand in the annotation, apart by commas."""
    parts = map(str.strip, annotations_of(root).get(APPROVE, "").split(","))
    return [part for part in parts if part]


def annotations_of(root: Any) -> Mapping[str, str]:
    metadata = root.get("metadata") or {} if isinstance(root, Mapping) else root.metadata
    found: Mapping[str, str] | None = (
        metadata.get("annotations") if isinstance(metadata, Mapping) else metadata.annotations
    )
    return found or {}


def root_ref(capability: Capability, root: Any) -> ObjectRef | None:
    """Which object a root is; None where nothing the capability watches is of its type."""
    if isinstance(root, Mapping) and root.get("apiVersion") and root.get("kind"):
        return ref_of(root, root["apiVersion"], root["kind"])
    resources = (watch.resource for watch in capability.watches)
    found = next((each for each in resources if isinstance(root, each.view)), None)
    return None if found is None else ref_of(root, found.api_version, found.kind)


def ref_of(root: Any, api_version: str, kind: str) -> ObjectRef:
    if isinstance(root, Mapping):
        metadata = root["metadata"]
        name, namespace, uid = metadata["name"], metadata.get("namespace", ""), metadata.get("uid", "")
    else:
        name, namespace, uid = root.metadata.name, root.metadata.namespace, root.metadata.uid
    return ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace, uid=uid)
