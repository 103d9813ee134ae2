"""Patches from the present to the desired node.

Metadata and spec are patched on the node, status on its subresource. Annotations about the status are part of the
status patch, so that both change atomically. Only differences are sent. All patches are merge patches: a strategic
merge patch would merge addresses by type and duplicate them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.kube.json import Json, Object
from nodeyard.kube.objects import Condition, OwnerReference, Taint
from nodeyard.kube.patch import merge_diff
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.plan.diff import diff_patch
from nodeyard.plan.model import FieldChange

_OF_STATUS: Final = (names.WRITTEN_AT, names.LARGEST_FREE, names.MIRRORED_CONDITIONS)


@dataclass(frozen=True)
class Patch:
    body: Object
    is_guarded: bool
    """It replaces a list and needs the resourceVersion."""

    def __bool__(self) -> bool:
        return bool(self.body)

    def fields(self) -> list[str]:
        """Names of the changed fields, without annotations if there are others."""
        named = [name for part in self.body.values() for name in part]
        return [name for name in named if name != "annotations"] or named

    def diff(self, node: TreeNode) -> tuple[FieldChange, ...]:
        """The human-readable diff, without heartbeats."""
        return diff_patch(wire(node), _without_heartbeats(self.body))


def of_main(present: TreeNode, wanted: TreeNode) -> Patch:
    """Return the patch of metadata and spec."""
    old, new = present.metadata, wanted.metadata
    metadata = _changes(
        ("labels", _map(old.labels, new.labels)),
        ("annotations", _map(_about_spec(old.annotations), _about_spec(new.annotations))),
        ("ownerReferences", _list(old.owner_references, new.owner_references, _owner)),
    )
    spec = _changes(
        ("taints", _list(present.spec.taints, wanted.spec.taints, _taint)),
        ("providerID", _changed(present.spec.provider_id, wanted.spec.provider_id)),
    )
    is_moved = present.spec.unschedulable != wanted.spec.unschedulable
    if is_moved:
        spec["unschedulable"] = wanted.spec.unschedulable or None
    # A cordon is guarded too: one that a person sets concurrently must not be taken for Nodeyard's.
    is_guarded = is_moved or "taints" in spec or "ownerReferences" in metadata
    return Patch(_changes(("metadata", metadata), ("spec", spec)), is_guarded)


def of_status(present: TreeNode, wanted: TreeNode, now: datetime) -> Patch:
    """Return the patch of status and of annotations about the status."""
    old, new = present.status, wanted.status
    annotations = _map(_about_status(present.metadata.annotations), _about_status(wanted.metadata.annotations))
    status = _changes(
        ("conditions", None if old.conditions == new.conditions else _conditions(present, wanted, now)),
        ("addresses", _list(old.addresses, new.addresses, msgspec.to_builtins)),
        ("capacity", _map(old.capacity, new.capacity)),
        ("allocatable", _map(old.allocatable, new.allocatable)),
        ("nodeInfo", _info_changes(present, wanted)),
    )
    body = _changes(("metadata", _changes(("annotations", annotations))), ("status", status))
    return Patch(body, "conditions" in status or "addresses" in status)


def wire(node: TreeNode, heard_at: datetime | None = None) -> Object:
    """Return the node as JSON: complete for a creation, otherwise the known fields."""
    metadata = node.metadata
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _present(
            name=metadata.name,
            labels=dict(metadata.labels),
            annotations=dict(metadata.annotations),
            ownerReferences=[_owner(each) for each in metadata.owner_references],
        ),
        "spec": _present(
            taints=[_taint(each) for each in node.spec.taints],
            unschedulable=node.spec.unschedulable,
            providerID=node.spec.provider_id,
        ),
        "status": _present(
            conditions=[_condition(each, heard_at) for each in node.status.conditions],
            addresses=[msgspec.to_builtins(each) for each in node.status.addresses],
            capacity=dict(node.status.capacity),
            allocatable=dict(node.status.allocatable),
            nodeInfo=_present(**msgspec.to_builtins(node.status.node_info)),
        ),
    }


def _changes(*fields: tuple[str, object]) -> Object:
    """Drop unchanged fields."""
    return {name: value for name, value in fields if value is not None and value != {}}


def _map(old: Mapping[str, str], new: Mapping[str, str]) -> Json:
    """Return a merge patch; equality, the usual case, is checked first."""
    return None if old == new else merge_diff(old, new)


def _present(**fields: object) -> Object:
    return {name: value for name, value in fields.items() if value}


def _changed(old: str, new: str) -> str | None:
    return None if old == new else new


def _list(
    old: tuple[msgspec.Struct, ...], new: tuple[msgspec.Struct, ...], to_wire: Callable[..., Object]
) -> list[Object] | None:
    return None if old == new else [to_wire(each) for each in new]


def _about_status(annotations: Mapping[str, str]) -> Object:
    return {key: annotations[key] for key in _OF_STATUS if key in annotations}


def _about_spec(annotations: Mapping[str, str]) -> Object:
    return {key: value for key, value in annotations.items() if key not in _OF_STATUS}


def _info_changes(present: TreeNode, wanted: TreeNode) -> Object:
    """All fields of nodeInfo are required strings: a removed value is empty, not absent."""
    old, new = present.status.node_info, wanted.status.node_info
    if old == new:
        return {}
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    return {name: value for name, value in after.items() if before[name] != value}


def _conditions(present: TreeNode, wanted: TreeNode, now: datetime) -> list[Object]:
    """Return the whole list. Changed conditions get a heartbeat now, others that of their last transition."""
    stood = set(present.status.conditions)
    return [_condition(each, each.last_transition_time if each in stood else now) for each in wanted.status.conditions]


def _condition(condition: Condition, heard_at: datetime | None) -> Object:
    since = condition.last_transition_time
    return _present(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        lastTransitionTime=None if since is None else format_rfc3339(since),
        lastHeartbeatTime=None if heard_at is None else format_rfc3339(heard_at),
    )


def _taint(taint: Taint) -> Object:
    since = taint.time_added
    return _present(
        key=taint.key,
        value=taint.value,
        effect=taint.effect,
        timeAdded=None if since is None else format_rfc3339(since),
    )


def _owner(owner: OwnerReference) -> Object:
    wire: Object = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    pairs = (("controller", owner.controller), ("blockOwnerDeletion", owner.block_owner_deletion))
    return wire | {name: value for name, value in pairs if value is not None}


def _without_heartbeats(body: Object) -> Object:
    status = body.get("status") or {}
    if "conditions" not in status:
        return body
    shown = [_shown(condition) for condition in status["conditions"]]
    return {**body, "status": {**status, "conditions": shown}}


def _shown(condition: Mapping[str, object]) -> Object:
    fields: Iterable[tuple[str, object]] = condition.items()
    return {name: value for name, value in fields if name != "lastHeartbeatTime"}
