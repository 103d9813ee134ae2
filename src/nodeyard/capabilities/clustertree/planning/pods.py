"""Reports pods of the root that are bound to a mirrored node and that nothing acknowledges.

Nodeyard mirrors nodes and does not move pods; a pod sync such as Kosmos' pod controllers must do that. Without one a
pod would wait silently, so it is reported after a minute.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.clustertree.messages import PodUnacknowledged
from nodeyard.capabilities.clustertree.snapshot import BoundPod, TreeSnapshot
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import ObjectRef

PATIENCE: Final = timedelta(seconds=60)


def unacknowledged(snapshot: TreeSnapshot, now: datetime) -> tuple[BoundPod, ...]:
    """Return the pods that have waited too long, sorted by namespace and name."""
    return tuple(pod for pod in snapshot.pending_pods if pod.since + PATIENCE <= now)


def block_unacknowledged(builder: PlanBuilder, snapshot: TreeSnapshot) -> None:
    for pod in unacknowledged(snapshot, builder.now):
        builder.block(pod_ref(pod), pod_message(pod, snapshot))
    for pod in snapshot.pending_pods:
        if pod.since + PATIENCE > builder.now:
            builder.wake(pod.since + PATIENCE)


def pod_ref(pod: BoundPod) -> ObjectRef:
    return ObjectRef(api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)


def pod_message(pod: BoundPod, snapshot: TreeSnapshot, *, is_early: bool = False) -> PodUnacknowledged:
    return PodUnacknowledged(
        cluster=snapshot.cluster.name,
        node=pod.node,
        pod=f"{pod.namespace}/{pod.name}",
        since=format_rfc3339(pod.since),
        is_early=is_early,
    )
