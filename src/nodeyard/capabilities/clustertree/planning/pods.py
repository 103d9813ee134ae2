"""Pods of the root that are bound to a mirrored node and that nobody has taken up.

Nodeyard mirrors nodes and moves no pods: somebody else, such as Kosmos' pod controllers, has to. Where nobody does the
pod would wait without a word, so after a minute it is told of.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import BoundPod, TreeSnapshot
from nodeyard.kube.json import Object
from nodeyard.kube.moments import written
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import ObjectRef

PATIENCE: Final = timedelta(seconds=60)


def unacknowledged(snapshot: TreeSnapshot, now: datetime) -> tuple[BoundPod, ...]:
    """Those that have waited for too long, by namespace and name."""
    return tuple(pod for pod in snapshot.waiting if pod.since + PATIENCE <= now)


def tell_waiting(draft: Draft, snapshot: TreeSnapshot) -> None:
    for pod in unacknowledged(snapshot, draft.now):
        draft.block(pod_ref(pod), Reason.POD_UNACKNOWLEDGED, pod_facts(pod, snapshot))
    for pod in snapshot.waiting:
        if pod.since + PATIENCE > draft.now:
            draft.wake(pod.since + PATIENCE)


def pod_ref(pod: BoundPod) -> ObjectRef:
    return ObjectRef(api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)


def pod_facts(pod: BoundPod, snapshot: TreeSnapshot) -> Object:
    return {
        "cluster": snapshot.cluster.name,
        "node": pod.node,
        "pod": f"{pod.namespace}/{pod.name}",
        "since": written(pod.since),
    }
