"""Computes the desired state of a mirrored node and plans its creation, adoption or update.

The desired node is derived from the present one, so that everything others wrote is preserved. A node is created with
taint, labels and status in one request, so that no pod without the toleration is ever scheduled to it.

A present node is changed by at most two patches: metadata with spec, and status. A patch that replaces a list carries
the resourceVersion. If both patches are needed, both carry it and status goes first, so that the leaf's state is not
delayed by a change that waits for approval or fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Final

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.messages import (
    ConditionsChanged,
    NodeAdopted,
    NodeCreated,
    NodeEmptied,
    NodeUpdated,
    ResourcesChanged,
    TreeMessage,
)
from nodeyard.capabilities.clustertree.planning import patches
from nodeyard.capabilities.clustertree.planning.availability import READY
from nodeyard.capabilities.clustertree.planning.conditions import conditions_of, readiness_conditions
from nodeyard.capabilities.clustertree.planning.labels import labels_of, platform
from nodeyard.capabilities.clustertree.planning.mirror import Mirror
from nodeyard.capabilities.clustertree.planning.mirror_policy import may_cross_address
from nodeyard.capabilities.clustertree.planning.ownership import is_adopted, node_ref, owned_by
from nodeyard.capabilities.clustertree.planning.resources import Offer, offer_of
from nodeyard.capabilities.clustertree.planning.taints import cordon_of, taints_of
from nodeyard.capabilities.clustertree.snapshot import (
    NodeAddress,
    NodeInfo,
    TreeNode,
    TreeNodeSpec,
    TreeNodeStatus,
    TreeSnapshot,
)
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.json import Object
from nodeyard.kube.names import MIRRORED_CLUSTER
from nodeyard.kube.taints import evicting_taints
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.diff import diff
from nodeyard.plan.model import Disruption, Verb, Write

_replace = msgspec.structs.replace
_NONE: Final = "0"

_known: dict[str, dict[str, tuple[object, ...]]] = {}
"""By Cluster and node: the inputs of a node that needed no change. Replaced as a whole by each plan of the Cluster."""


class UnchangedNodes:
    """Nodes of one plan that need no change because they and all their inputs are identical to the last plan.

    A pod event concerns one leaf node, and a Cluster may mirror a thousand. Values are immutable, so the same object
    means the same value. The cache makes plans cheaper and never different.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._before = _known.get(cluster, {})
        self._now: dict[str, tuple[object, ...]] = {}

    def contains(self, node: str, inputs: tuple[object, ...]) -> bool:
        """Return True if the last plan found no change for exactly these inputs."""
        known = self._before.get(node)
        if known is None or len(known) != len(inputs) or not all(map(is_, known, inputs)):
            return False
        self._now[node] = known
        return True

    def record(self, node: str, inputs: tuple[object, ...]) -> None:
        """Remember that the node needs no change."""
        self._now[node] = inputs

    def save(self) -> None:
        """Keep the result for the next plan; a Cluster without nodes is forgotten."""
        if self._now:
            _known[self._cluster] = self._now
        else:
            _known.pop(self._cluster, None)


def plan_node(builder: PlanBuilder, mirror: Mirror, unchanged: UnchangedNodes, after: tuple[str, ...]) -> bool:
    """Bring the node to its desired state. Return True if nothing is left to do after this plan."""
    name, inputs = mirror.placement.name, mirror.inputs()
    if unchanged.contains(name, inputs):
        return True
    offer = offer_of(mirror)
    wanted = _wanted(mirror, offer)
    if mirror.node is None:
        _create(builder, mirror, wanted, after)
        return False
    known = len(builder.actions)
    kind = NodeUpdated if is_adopted(mirror.node) else NodeAdopted
    Change(mirror.snapshot.cluster, mirror.node, wanted, after).plan(builder, kind)
    if offer.held_until is not None:
        builder.wake(offer.held_until)
    elif len(builder.actions) == known:
        unchanged.record(name, inputs)
    return True


def plan_readiness(
    builder: PlanBuilder, snapshot: TreeSnapshot, node: TreeNode, members: Sequence[TreeNode] | None = None
) -> tuple[str, ...]:
    """Update only the Ready condition of the node. Return the ids of the actions."""
    known = len(builder.actions)
    status = _replace(node.status, conditions=readiness_conditions(node, snapshot, builder.now, members))
    Change(snapshot.cluster, node, _replace(node, status=status)).plan(builder)
    return tuple(each.id for each in builder.actions[known:])


def plan_empty(builder: PlanBuilder, snapshot: TreeSnapshot, node: TreeNode) -> tuple[str, ...]:
    """Set the node's resources to zero: other nodes have its leaf nodes, or the leaf node is gone.

    Return the ids of the actions, which must precede a removal.
    """
    known = len(builder.actions)
    status = _replace(
        node.status,
        conditions=readiness_conditions(node, snapshot, builder.now),
        capacity=dict.fromkeys(node.status.capacity, _NONE),
        allocatable=dict.fromkeys(node.status.allocatable, _NONE),
    )
    annotations = {key: text for key, text in node.metadata.annotations.items() if key != names.LARGEST_FREE}
    wanted = _replace(node, metadata=_replace(node.metadata, annotations=annotations), status=status)
    Change(snapshot.cluster, node, wanted, amounts=NodeEmptied).plan(builder)
    return tuple(each.id for each in builder.actions[known:])


def _wanted(mirror: Mirror, offer: Offer) -> TreeNode:
    cluster, placement, present = mirror.snapshot.cluster, mirror.placement, mirror.present
    labels, taints, cordon, conditions = labels_of(mirror), taints_of(mirror), cordon_of(mirror), conditions_of(mirror)
    notes = {
        MIRRORED_CLUSTER: cluster.name,
        names.NODE_MODE: placement.model.mode.value,
        names.MODEL: placement.model.identity,
        names.MIRRORED_LABELS: labels.recorded,
        names.MIRRORED_TAINTS: taints.recorded,
        names.MIRRORED_CONDITIONS: conditions.recorded,
        names.CORDONED_BY: cordon.by,
        names.WRITTEN_AT: offer.written_at,
        names.LARGEST_FREE: offer.largest,
    }
    annotations = {key: value for key, value in present.metadata.annotations.items() if key not in notes}
    metadata = _replace(
        present.metadata,
        labels=labels.over(present.metadata.labels, mirror.annotation(names.MIRRORED_LABELS)),
        annotations=annotations | {key: value for key, value in notes.items() if value},
        owner_references=owned_by(cluster, present.metadata.owner_references),
    )
    spec = TreeNodeSpec(
        taints=taints.over(present.spec.taints, mirror.annotation(names.MIRRORED_TAINTS)),
        unschedulable=cordon.is_cordoned,
        # providerID is immutable once set.
        provider_id=present.spec.provider_id or names.provider_id(cluster.name, placement.name),
    )
    status = TreeNodeStatus(
        conditions=conditions.stand,
        addresses=addresses_of(mirror),
        capacity=dict(offer.capacity),
        allocatable=dict(offer.allocatable),
        node_info=node_info_of(mirror),
    )
    return TreeNode(metadata=metadata, spec=spec, status=status)


def _create(builder: PlanBuilder, mirror: Mirror, wanted: TreeNode, after: tuple[str, ...]) -> None:
    model = mirror.placement.model
    cluster = mirror.snapshot.cluster.name
    builder.act(
        Verb.CREATE,
        node_ref(wanted.name),
        NodeCreated(cluster=cluster, node=wanted.name, mode=model.mode.value, model=model.title),
        Write(body=patches.wire(wanted, builder.now)),
        diff=diff(None, patches.wire(wanted)),
        after=after,
    )


def addresses_of(mirror: Mirror) -> tuple[NodeAddress, ...]:
    if not mirror.is_single:
        return (NodeAddress(type="Hostname", address=mirror.placement.name),)
    # The API server rejects duplicate addresses.
    found = (address for node in mirror.members for address in node.status.addresses)
    return tuple(dict.fromkeys(filter(may_cross_address, found)))


def node_info_of(mirror: Mirror) -> NodeInfo:
    """A mirror of several nodes shows the version of their API server; until then it keeps its present value."""
    if mirror.is_single and mirror.members:
        return mirror.members[0].status.node_info
    arch, system = platform(mirror)
    version = mirror.snapshot.leaf.version or mirror.present.status.node_info.kubelet_version
    return _replace(NodeInfo(), kubelet_version=version, architecture=arch, operating_system=system)


@dataclass(frozen=True)
class Change:
    cluster: Cluster
    present: TreeNode
    wanted: TreeNode
    after: tuple[str, ...] = ()
    """Ids of actions that must precede the patches."""
    amounts: type[TreeMessage] = ResourcesChanged
    """The message of a change of the node's resources."""

    def plan(self, builder: PlanBuilder, kind: type[NodeUpdated | NodeAdopted] = NodeUpdated) -> None:
        """Add the patches to the plan; `kind` is the message of the patch of metadata and spec."""
        main = patches.of_main(self.present, self.wanted)
        status = patches.of_status(self.present, self.wanted, builder.now)
        is_bound = bool(main and status)
        after = self.after
        if status:
            message = self._status_message(status.body)
            after += (self._send(builder, status, message, after, is_bound=is_bound, subresource="status"),)
        if main:
            message = self._updated(main.fields()) if kind is NodeUpdated else self._message(kind)
            self._send(builder, main, message, after, is_bound=is_bound, approval_group=self._eviction)

    def _message(self, kind: type[TreeMessage]) -> TreeMessage:
        return kind(cluster=self.cluster.name, node=self.present.name)

    def _updated(self, fields: Iterable[str]) -> NodeUpdated:
        return NodeUpdated(cluster=self.cluster.name, node=self.present.name, what=tuple(fields))

    @property
    def _eviction(self) -> str:
        """Approval group of new NoExecute taints, for all nodes; empty if no pod has to leave.

        The group names the taints: they may come from the leaf, and taints that appear later need their own approval.
        """
        taints = evicting_taints(self.present.spec.taints, self.wanted.spec.taints)
        if not taints:
            return ""
        metadata, named = self.cluster.metadata, sorted(f"{each.key}={each.value}" for each in taints)
        return f"taint/{metadata.uid}/{metadata.generation}/{','.join(named)}"

    def _send(
        self,
        builder: PlanBuilder,
        patch: patches.Patch,
        message: TreeMessage,
        after: tuple[str, ...],
        *,
        is_bound: bool,
        subresource: str = "",
        approval_group: str = "",
    ) -> str:
        metadata = self.present.metadata
        return builder.act(
            Verb.PATCH,
            node_ref(metadata.name, metadata.uid),
            message,
            Write(
                body=patch.body,
                subresource=subresource,
                resource_version=metadata.resource_version if is_bound or patch.is_guarded else "",
            ),
            diff=patch.diff(self.present),
            disruption=Disruption.EVICTS if approval_group else Disruption.NONE,
            after=after,
            part=subresource,
            approval_group=approval_group,
        )

    def _status_message(self, body: Object) -> TreeMessage:
        """Return the message of the most important change in a status patch."""
        status = body.get("status") or {}
        if "conditions" in status:
            cluster, node, ready = self.cluster.name, self.present.name, self.wanted.condition(READY)
            if ready is None:
                return ConditionsChanged(cluster=cluster, node=node)
            return ConditionsChanged(cluster=cluster, node=node, status=ready.status, why=ready.reason)
        if "capacity" in status or "allocatable" in status:
            return self._message(self.amounts)
        return self._updated(sorted(status) or sorted(body["metadata"]))
