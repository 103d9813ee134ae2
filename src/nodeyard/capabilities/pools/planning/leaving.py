"""A pool that is being removed, as the steps of its removal see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.applying import ref_to
from nodeyard.capabilities.pools.snapshot import Machine, PoolsSnapshot, Workload
from nodeyard.capabilities.pools.types import DeletionPolicy
from nodeyard.kube import meta, moments
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Node
from nodeyard.plan.model import ObjectRef

_LONGEST = 2**31 - 1
"""What Cluster API can hold."""


@dataclass(frozen=True)
class LeavingPool:
    snapshot: PoolsSnapshot
    deployment: Object
    pool: str

    @property
    def policy(self) -> DeletionPolicy:
        return self.snapshot.cluster.policy

    @property
    def timeout(self) -> int:
        """Seconds; 0 is without end."""
        return min(max(0, self.snapshot.cluster.spec.pool_drain_timeout), _LONGEST)

    @property
    def workload(self) -> Workload:
        return self.snapshot.workload

    @property
    def is_reachable(self) -> bool:
        """Whether its nodes are where we look for them.

        Before a pivot they are not: a node of ours may well have the name of one of theirs, and be taken for it.
        """
        workload = self.workload
        return workload.is_own or bool(workload.cluster and workload.uid and not workload.error)

    @property
    def ref(self) -> ObjectRef:
        return ref_to(self.deployment)

    @property
    def owner(self) -> str:
        """What a node that we cordoned says of who did."""
        return f"{self.snapshot.cluster.name}/{self.pool}"

    @property
    def started(self) -> datetime | None:
        """When the drain began."""
        return moments.read(meta.annotations(self.deployment).get(names.DRAIN_STARTED))

    @cached_property
    def machines(self) -> list[Machine]:
        """Those there are now: some may have come since the drain began."""
        return self.snapshot.management.machines_of(meta.name(self.deployment))

    @cached_property
    def nodes(self) -> list[Node]:
        """The nodes that its Machines have become and that are still there, by name. Others have nothing to drain."""
        known = self.workload.nodes if self.is_reachable else {}
        return [known[name] for name in sorted({each.node for each in self.machines}) if name in known]

    @property
    def disturbed(self) -> tuple[str, ...]:
        """Every node of the pool, as the brake counts them."""
        return node_names(self.workload, self.machines)

    @property
    def undertaking(self) -> str:
        """All steps of its removal under one policy: they are approved together. One that is put back, and taken out
        by a later edit, is asked about anew."""
        edit = self.snapshot.cluster.metadata.generation
        return f"remove {self.owner} {meta.uid(self.deployment)} {self.policy.value} {edit}"

    def node_ref(self, node: Node) -> ObjectRef:
        metadata = node.metadata
        return ObjectRef(
            api_version="v1", kind="Node", name=metadata.name, uid=metadata.uid, cluster=self.workload.cluster
        )

    def facts(self, **more: object) -> Object:
        return {
            "cluster": self.snapshot.cluster.name,
            "pool": self.pool,
            "deployment": meta.name(self.deployment),
            **more,
        }


def node_names(workload: Workload, machines: Sequence[Machine]) -> tuple[str, ...]:
    """The nodes that these have become, each with its cluster where that is not our own."""
    place = f"{workload.cluster}:" if workload.cluster else ""
    return tuple(sorted({f"{place}{each.node}" for each in machines if each.node}))
