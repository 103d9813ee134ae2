"""Brings an existing node to its desired state by at most two patches: metadata with spec, and status.

A patch that replaces a list carries the resourceVersion. If both patches are needed, both carry it and status goes
first, so that the leaf's state is not delayed by a change that waits for approval or fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nodeyard.capabilities.clustertree.messages import (
    ConditionsChanged,
    NodeAdopted,
    NodeUpdated,
    ResourcesChanged,
    TreeMessage,
)
from nodeyard.capabilities.clustertree.planning import patches
from nodeyard.capabilities.clustertree.planning.availability import READY
from nodeyard.capabilities.clustertree.planning.ownership import node_ref
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.json import Object
from nodeyard.kube.taints import evicting
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Disruption, Verb, Write


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
        taints = evicting(self.present.spec.taints, self.wanted.spec.taints)
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
