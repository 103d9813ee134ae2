"""Stand-in controllers of ReplicaSets and StatefulSets: they replace pods that are gone, and scale.

They roll nothing out: a pod of an older template stays. DaemonSets and Jobs have no stand-in. Virtual time passes only
when every informer has caught up, so they need no expectations of their own writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nodeyard.client.api import Client
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock
from nodeyard.sim.conditions import Subject
from nodeyard.sim.index import Entity
from nodeyard.sim.machines.object_client import ObjectClient
from nodeyard.sim.machines.objects import is_deleting
from nodeyard.sim.seeded_random import SeededRandom
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.stage_set import Reconciler

REPLICA_SET: Final = Kind("apps/v1", "ReplicaSet")
STATEFUL_SET: Final = Kind("apps/v1", "StatefulSet")
_HELM_RELEASE: Final = "helm.toolkit.fluxcd.io/name"
"""Label of StatefulSets that the simulated helm-controller manages."""
_SUFFIX_LENGTH: Final = 5


class Workloads:
    def __init__(self, client: Client, clock: Clock, seed: int) -> None:
        self._objects = ObjectClient(client, clock)
        self._random = SeededRandom(seed)
        self._created = 0
        self.reconcilers: Sequence[Reconciler] = (
            Reconciler("replicaset", REPLICA_SET, self.scale, _is_kept, follows=("pods-of-replicaset",)),
            Reconciler("statefulset", STATEFUL_SET, self.fill, _is_kept, follows=("pods-of-statefulset",)),
        )

    async def scale(self, entity: Entity) -> None:
        """Create the missing pods of a ReplicaSet, and delete surplus ones, those that do not run first."""
        owner = entity.object
        pods = [one.object for one in entity.index.referrers("pods-of-replicaset", entity) if _is_active(one.object)]
        replicas = owner["spec"].get("replicas", 1)
        for _ in range(replicas - len(pods)):
            self._created += 1
            suffix = self._random.suffix(_SUFFIX_LENGTH, "pod", owner["metadata"]["uid"], self._created)
            await self._objects.create(_pod(owner, REPLICA_SET, f"{owner['metadata']['name']}-{suffix}"))
        pods.sort(key=lambda pod: (_is_ready(pod), pod["metadata"]["name"]))
        for pod in pods[: max(0, len(pods) - replicas)]:
            await self._objects.delete(pod)
        ready = sum(map(_is_ready, pods))
        status = {"replicas": len(pods), "readyReplicas": ready, "availableReplicas": ready}
        await self._objects.update_status(owner, status)

    async def fill(self, entity: Entity) -> None:
        """Create the missing pods of a StatefulSet; a pod that is being deleted keeps its name until it is gone."""
        owner = entity.object
        pods = {one.key.name: one.object for one in entity.index.referrers("pods-of-statefulset", entity)}
        start = (owner["spec"].get("ordinals") or {}).get("start", 0)
        for ordinal in range(start, start + owner["spec"].get("replicas", 1)):
            name = f"{owner['metadata']['name']}-{ordinal}"
            if name not in pods:
                await self._objects.create(_pod(owner, STATEFUL_SET, name))
        ready = sum(map(_is_ready, pods.values()))
        await self._objects.update_status(owner, {"replicas": len(pods), "readyReplicas": ready})


def _is_kept(owner: Subject) -> bool:
    labels = owner.object["metadata"].get("labels") or {}
    return not is_deleting(owner.object) and _HELM_RELEASE not in labels


def _is_active(pod: Object) -> bool:
    return not is_deleting(pod) and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return _is_active(pod) and any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _pod(owner: Object, kind: Kind, name: str) -> Object:
    metadata, template = owner["metadata"], owner["spec"]["template"]
    wanted = template.get("metadata") or {}
    reference = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": dict(wanted.get("labels") or {}),
            "annotations": dict(wanted.get("annotations") or {}),
            "ownerReferences": [reference],
        },
        "spec": template["spec"],
    }
