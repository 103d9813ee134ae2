"""A pool that is being removed, with the values that the steps of its removal share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.server_side_apply import ref_to
from nodeyard.capabilities.pools.snapshot import Machine, PoolsSnapshot, Workload
from nodeyard.capabilities.pools.types import DeletionPolicy
from nodeyard.kube import meta, timestamps
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Node
from nodeyard.plan.model import ObjectRef

_LONGEST = 2**31 - 1
"""The largest timeout that Cluster API accepts (int32)."""


@dataclass(frozen=True)
class RemovedPool:
    snapshot: PoolsSnapshot
    deployment: Object
    pool: str

    @property
    def policy(self) -> DeletionPolicy:
        return self.snapshot.cluster.policy

    @property
    def timeout(self) -> int:
        """The drain timeout in seconds; 0 means no limit."""
        return min(max(0, self.snapshot.cluster.spec.pool_drain_timeout), _LONGEST)

    @property
    def workload(self) -> Workload:
        return self.snapshot.workload

    @property
    def is_reachable(self) -> bool:
        """True if the workload cluster is known and reachable.

        Before a pivot a local node may have the same name as a node of the workload cluster and be mistaken for it.
        """
        workload = self.workload
        return workload.is_own or bool(workload.cluster and workload.uid and not workload.error)

    @property
    def ref(self) -> ObjectRef:
        return ref_to(self.deployment)

    @property
    def owner(self) -> str:
        """The value of the annotation lattice.dev/cordoned-by: cluster/pool."""
        return f"{self.snapshot.cluster.name}/{self.pool}"

    @property
    def started(self) -> datetime | None:
        """The start time of the drain."""
        return timestamps.parse_rfc3339_or_none(meta.annotations(self.deployment).get(names.DRAIN_STARTED))

    @cached_property
    def machines(self) -> list[Machine]:
        """Current Machines; some may have joined since the drain started."""
        return self.snapshot.management.machines_of(meta.name(self.deployment))

    @cached_property
    def nodes(self) -> list[Node]:
        """Existing nodes of its Machines, sorted by name."""
        known = self.workload.nodes if self.is_reachable else {}
        return [known[name] for name in sorted({each.node for each in self.machines}) if name in known]

    @property
    def disrupted_nodes(self) -> tuple[str, ...]:
        """Every node of the pool, for the brake."""
        return node_names(self.workload, self.machines)

    @property
    def approval_group_name(self) -> str:
        """The approval group: all steps of this removal under one policy.

        A pool that is added again and removed by a later edit needs a new approval.
        """
        edit = self.snapshot.cluster.metadata.generation
        return f"remove {self.owner} {meta.uid(self.deployment)} {self.policy.value} {edit}"

    def node_ref(self, node: Node) -> ObjectRef:
        metadata = node.metadata
        return ObjectRef(
            api_version="v1", kind="Node", name=metadata.name, uid=metadata.uid, cluster=self.workload.cluster
        )


def node_names(workload: Workload, machines: Sequence[Machine]) -> tuple[str, ...]:
    """Return the nodes of Machines, prefixed with the cluster if it is remote."""
    place = f"{workload.cluster}:" if workload.cluster else ""
    return tuple(sorted({f"{place}{each.node}" for each in machines if each.node}))
