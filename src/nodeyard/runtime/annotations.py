"""The annotations by which users control the loop on a root object: pause and approve.

Roots come from the cache as structs or as plain dicts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any

from nodeyard.kube.names import APPROVE, PAUSED
from nodeyard.kube.object_key import identity_of
from nodeyard.plan.brake import JOINT
from nodeyard.plan.model import Action, ObjectRef
from nodeyard.runtime.capability import Capability


def is_paused(root: Any) -> bool:
    return annotations_of(root).get(PAUSED) == "true"


def is_key_paused(capability: Capability, roots: Sequence[Any]) -> bool:
    """Return True if a key is not planned, because all its roots are paused."""
    return bool(roots) and not capability.roots.plan_handles_pause and all(map(is_paused, roots))


def approvals(roots: Sequence[Any]) -> Collection[str]:
    """Return the ids of held plans that users have approved."""
    return {id for root in roots for id in approved_on(root)}


def approved_on(root: Any) -> list[str]:
    """Return the comma-separated ids of the approve annotation, in order."""
    parts = map(str.strip, annotations_of(root).get(APPROVE, "").split(","))
    return [part for part in parts if part]


def without_approvals(root: Any, running: Set[str]) -> str | None:
    """Return the approve annotation without the ids of groups that no longer run; None if nothing changes. One id may
    name several groups: it stays while one of them runs."""
    given = approved_on(root)
    kept = [id for id in given if not running.isdisjoint(id.split(JOINT))]
    return None if kept == given else ",".join(kept)


def user_edits_of(root: Any) -> tuple[Any, ...]:
    """Return everything that a user changes on a root by editing, annotating, deleting or replacing it. Excludes
    status."""
    metadata = root.get("metadata") or {} if isinstance(root, Mapping) else root.metadata
    if isinstance(metadata, Mapping):
        found = [metadata.get(each) for each in ("uid", "generation", "deletionTimestamp")]
    else:
        found = [metadata.uid, metadata.generation, metadata.deletion_timestamp]
    return (*found, annotations_of(root))


def is_same_version(one: Any, other: Any) -> bool:
    """Return True if both are the same version of the same object."""
    ours, theirs = identity_of(type(one)), identity_of(type(other))
    return (ours.uid(one), ours.version(one)) == (theirs.uid(other), theirs.version(other))


def annotations_of(root: Any) -> Mapping[str, str]:
    metadata = root.get("metadata") or {} if isinstance(root, Mapping) else root.metadata
    found: Mapping[str, str] | None = (
        metadata.get("annotations") if isinstance(metadata, Mapping) else metadata.annotations
    )
    return found or {}


def root_ref(capability: Capability, root: Any) -> ObjectRef | None:
    """Return the reference of a root; None if no watch of the capability has its type."""
    if isinstance(root, Mapping) and root.get("apiVersion") and root.get("kind"):
        return ref_of(root, root["apiVersion"], root["kind"])
    resources = (watch.resource for watch in capability.watches)
    found = next((each for each in resources if isinstance(root, each.view)), None)
    return None if found is None else ref_of(root, found.api_version, found.kind)


def roots_of(
    capability: Capability, actions: Iterable[Action], roots: Sequence[tuple[Any, ObjectRef]]
) -> list[tuple[Any, ObjectRef]]:
    """Return the roots of a key that these actions are for."""
    if len(roots) < 2:
        return list(roots) if any(True for _ in actions) else []
    named = {capability.roots.of_action(action) for action in actions}
    return [(root, ref) for root, ref in roots if (ref.namespace, ref.name) in named]


def ref_of(root: Any, api_version: str, kind: str) -> ObjectRef:
    if isinstance(root, Mapping):
        metadata = root["metadata"]
        name, namespace, uid = metadata["name"], metadata.get("namespace", ""), metadata.get("uid", "")
    else:
        name, namespace, uid = root.metadata.name, root.metadata.namespace, root.metadata.uid
    return ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace, uid=uid)
