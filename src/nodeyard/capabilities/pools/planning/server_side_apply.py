"""Applies managed objects with server-side apply, only if it would change something. Omitted fields are removed.

After `clusterctl move` the manager clusterctl owns every field, so an apply would remove nothing. Nodeyard therefore
takes ownership of the fields that it sets and whose values are equal; no value changes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.changes import FieldsTakenOver
from nodeyard.capabilities.pools.types import LatticeCluster
from nodeyard.kube.json import Object
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.diff import diff
from nodeyard.plan.managed_fields import preview_apply, transfer_fields
from nodeyard.plan.message import Message
from nodeyard.plan.model import Disruption, FieldChange, ObjectRef, Verb, Write


class ApprovalGroup(NamedTuple):
    """Approval group of an action: actions that are approved together."""

    name: str = ""
    nodes: int = 0
    """The number of nodes that the whole group disrupts, if other clusters share it."""
    managed: int = 0
    root: ObjectRef | None = None
    """The object that carries the approval of a shared group."""


NO_GROUP = ApprovalGroup()


def change_group(lc: LatticeCluster, what: str) -> ApprovalGroup:
    """Return the approval group of one change of one object.

    The same change in a later generation needs a new approval, and so does every other change in this generation: a
    pool that somebody scales by hand is scaled back without an edit of the LatticeCluster.
    """
    return ApprovalGroup(f"{changes_prefix(lc)}{what}")


def changes_prefix(lc: LatticeCluster) -> str:
    """Return how the names of all change groups of this generation begin."""
    return f"change {lc.metadata.uid} {lc.metadata.generation} "


def upgrade_group(lc: LatticeCluster) -> ApprovalGroup:
    """Return the approval group of an upgrade, which may take hours: its approval is for no other change meanwhile."""
    return ApprovalGroup(f"upgrade {lc.metadata.uid} {lc.metadata.generation}")


def class_group_name(metadata: ObjectMeta) -> str:
    """Return the name of the approval group of an edit of a LatticeNodeClass, for all clusters that use it."""
    return f"roll class {metadata.uid} {metadata.generation}"


def ref_to(obj: Object, uid: str = "") -> ObjectRef:
    """Return the reference of an object, whether it exists or not."""
    metadata = obj["metadata"]
    return ObjectRef(
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        uid=uid or metadata.get("uid", ""),
    )


def changes(
    live: Object | None, body: Object, manager: str = names.MANAGER, keeping: Collection[tuple[str, ...]] = ()
) -> tuple[FieldChange, ...]:
    """Return the changes that an apply of the body would make; empty if none is needed."""
    if live is None:
        return diff(None, body)
    after = preview_apply(live, body, manager, keeping)
    return () if after is live else diff(live, after)


def apply(
    builder: PlanBuilder,
    live: Object | None,
    body: Object,
    message: Message,
    *,
    disruption: Disruption = Disruption.NONE,
    disrupts: tuple[str, ...] = (),
    after: Sequence[str] = (),
    changed: tuple[FieldChange, ...] | None = None,
    force: bool = True,
    group: ApprovalGroup = NO_GROUP,
    always_asks: bool = False,
) -> str:
    """Apply an object; return the action's id, empty if nothing changes. Pass `changed` if it is already computed."""
    if changed is None:
        changed = changes(live, body)
    if not changed:
        return "" if live is None else _take_ownership(builder, live, body)
    return builder.act(
        Verb.APPLY,
        ref_to(body, "" if live is None else live["metadata"].get("uid", "")),
        message,
        Write(body=body, force=force),
        diff=changed,
        disruption=disruption,
        disrupts=disrupts,
        after=tuple(each for each in after if each),
        approval_group=group.name if disruption is not Disruption.NONE else "",
        group_nodes=group.nodes,
        group_managed=group.managed,
        group_root=group.root,
        always_asks=always_asks,
    )


def _take_ownership(builder: PlanBuilder, live: Object, body: Object) -> str:
    """Take field ownership from clusterctl; return the action's id.

    Empty if Nodeyard owns all fields, or if another action of this plan writes the object first.
    """
    fields = transfer_fields(live, body, names.MANAGER, names.MOVER)
    ref = ref_to(live)
    if fields is None or any(each.object == ref for each in builder.actions):
        return ""
    return builder.act(
        Verb.PATCH,
        ref,
        FieldsTakenOver(object=str(ref)),
        Write(body={"metadata": {"managedFields": fields}}, resource_version=live["metadata"]["resourceVersion"]),
        part="fields",
    )
