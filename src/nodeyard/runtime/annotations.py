"""The annotations by which users control the loop on a root object: pause and approve.

Roots come from the cache as structs or as plain dicts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from nodeyard.kube.names import APPROVE, PAUSED
from nodeyard.kube.object_key import identity_of
from nodeyard.plan import identity
from nodeyard.plan.brake import JOINT, is_counted
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import EVERY_GROUP, Action, FieldChange, ObjectRef, Planned, Verb, Write
from nodeyard.plan.reasons import ApprovalRemoved
from nodeyard.runtime.capability import Capability


def is_paused(root: Any) -> bool:
    return annotations_of(root).get(PAUSED) == "true"


def is_key_paused(capability: Capability, roots: Sequence[Any]) -> bool:
    """Return True if a key is not planned, because all its roots are paused."""
    return bool(roots) and not capability.roots.plan_handles_pause and all(map(is_paused, roots))


def approvals(roots: Sequence[Any]) -> Collection[str]:
    """Return the ids of held plans that users have approved."""
    return {id for root in roots for id in approval_ids(root)}


def approval_ids(root: Any) -> list[str]:
    """Return the comma-separated ids of the approve annotation, in order."""
    parts = map(str.strip, annotations_of(root).get(APPROVE, "").split(","))
    return [part for part in parts if part]


def without_approvals(root: Any, running: Set[str]) -> str | None:
    """Return the approve annotation without the ids of groups that no longer run; None if nothing changes. An id that
    names several groups keeps those that run."""
    given = approval_ids(root)
    left = (JOINT.join(part for part in id.split(JOINT) if part in running) for id in given)
    kept = [id for id in left if id]
    return None if kept == given else ",".join(kept)


def running_approvals(planned: Planned) -> Set[str]:
    """Return the ids of approvals that a plan still needs: of its counted actions, and of its open groups."""
    plan = planned.plan
    counted = identity.approvals(plan, filter(is_counted, plan.actions))
    return {*counted, *(identity.group_id(plan.capability, group) for group in planned.open_groups)}


def end_approvals(roots: Iterable[tuple[Any, ObjectRef]], planned: Planned) -> Planned | None:
    """Return the plan that removes the approvals that this plan no longer needs; None if there are none.

    The same change later needs a new approval. A paused root keeps its approvals: its actions are only left out.
    """
    approved = [(root, ref) for root, ref in roots if approval_ids(root) and not is_paused(root) and not _is_gone(root)]
    if not approved or EVERY_GROUP in planned.open_groups:
        return None
    running, builder = running_approvals(planned), PlanBuilder(datetime.min)
    for root, ref in approved:
        left = without_approvals(root, running)
        if left is None:
            continue
        given = annotations_of(root)[APPROVE]
        builder.act(
            Verb.PATCH,
            ref,
            ApprovalRemoved(object=str(ref), ids=tuple(each for each in approval_ids(root) if each not in left)),
            Write(
                body={"metadata": {"annotations": {APPROVE: left or None}}},
                resource_version=identity_of(type(root)).version(root),
            ),
            diff=(FieldChange(path=f"metadata.annotations[{APPROVE}]", from_=given, to=left or None),),
            part="approval",
        )
    return builder.planned(planned.plan.capability, planned.plan.key) if builder.actions else None


def _is_gone(root: Any) -> bool:
    """Return True if the root is being deleted: its approvals go with it."""
    metadata = root.get("metadata") or {} if isinstance(root, Mapping) else root.metadata
    return bool(metadata.get("deletionTimestamp") if isinstance(metadata, Mapping) else metadata.deletion_timestamp)


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
