"""Deletion of a Machine, in the steps of Cluster API.

    hooks ─▶ drain ─▶ hooks ─▶ infrastructure machine ─▶ KubeadmConfig ─▶ node ─▶ gone

Each reconcile goes as far as it can. The Node is kept if the whole cluster is being deleted, if no control plane
machine is left, or if the machine has no Node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from nodeyard.client.errors import ApiError, NotFound, TooManyRequests
from nodeyard.kube.json import Object
from nodeyard.kube.names import MIRROR_POD
from nodeyard.kube.timestamps import parse_rfc3339
from nodeyard.sim.executor import Requeue
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.object_client import ObjectClient
from nodeyard.sim.machines.objects import NewCondition, annotations_of, is_deleting, labels_of

DRAIN_RETRY_SECONDS: Final = 20.0
_DELETED_POLL_SECONDS: Final = 0.2
_VIOLATES: Final = "cannot evict pod as it would violate the pod's disruption budget. "


class MachineDeletion:
    def __init__(self, objects: ObjectClient, drain_retry: float = DRAIN_RETRY_SECONDS) -> None:
        self._objects = objects
        self._drain_retry = drain_retry

    async def reconcile(self, entity: Entity) -> None:
        obj = entity.object
        has_node = _deletes_node(entity)
        if has_node:
            await self._wait_for_hooks(obj, names.PRE_DRAIN_HOOK, "WaitingForPreDrainHook", "pre-drain")
            await self._drain(entity)
        await self._wait_for_hooks(obj, names.PRE_TERMINATE_HOOK, "WaitingForPreTerminateHook", "pre-terminate")
        await self._delete_reference(obj, obj["spec"]["infrastructureRef"], "WaitingForInfrastructureDeletion")
        if reference := (obj["spec"].get("bootstrap") or {}).get("configRef"):
            await self._delete_reference(obj, reference, "WaitingForBootstrapDeletion")
        if has_node:
            node = await self._objects.get(names.NODE, obj["status"]["nodeRef"]["name"])
            if node is not None:
                await self._objects.delete(node)
        await self._objects.set_finalizer(obj, names.MACHINE_FINALIZER, is_present=False)

    async def _wait_for_hooks(self, obj: Object, prefix: str, reason: str, stage: str) -> None:
        hooks = sorted(key for key in annotations_of(obj) if key.startswith(prefix))
        if hooks:
            await self._update_status(obj, reason, f"Waiting for {stage} hooks to succeed (hooks: {','.join(hooks)})")
            raise Requeue(self._drain_retry, reason, has_backoff=False)

    async def _delete_reference(self, obj: Object, reference: Object, reason: str) -> None:
        found = await self._objects.resolve(reference, obj["metadata"]["namespace"])
        if found is None:
            return
        await self._objects.delete(found)
        if await self._objects.resolve(reference, obj["metadata"]["namespace"]) is not None:
            await self._update_status(obj, reason, f"Waiting for {reference['kind']} to be deleted")
            raise Requeue(_DELETED_POLL_SECONDS, reason, has_backoff=False)

    async def _drain(self, entity: Entity) -> None:
        obj = entity.object
        node = entity.related("node-of-machine")
        if node is None or names.EXCLUDE_DRAINING in annotations_of(obj) or self._is_drain_timed_out(obj):
            return
        if await self._objects.resolve(obj["spec"]["infrastructureRef"], obj["metadata"]["namespace"]) is None:
            return
        since = ((obj.get("status") or {}).get("deletion") or {}).get("nodeDrainStartTime") or self._objects.now()
        await self._objects.patch(node.object, {"spec": {"unschedulable": True}})
        pods = [one.object for one in entity.index.referrers("node-of-pod", node)]
        waiting = await self._evict(
            [pod for pod in pods if _is_evictable(pod)], is_unreachable=_is_unreachable(node.object)
        )
        if waiting:
            text = "\n".join((f"Drain not completed yet (started at {since}):", *waiting))
            await self._update_status(obj, "DrainingNode", text, {"deletion": {"nodeDrainStartTime": since}})
            raise Requeue(self._drain_retry, text, has_backoff=False)

    def _is_drain_timed_out(self, obj: Object) -> bool:
        timeout = (obj["spec"].get("deletion") or {}).get("nodeDrainTimeoutSeconds") or 0
        since = ((obj.get("status") or {}).get("deletion") or {}).get("nodeDrainStartTime")
        if not timeout or since is None:
            return False
        return (self._objects.clock.now() - parse_rfc3339(since)).total_seconds() >= timeout

    async def _evict(self, pods: Sequence[Object], *, is_unreachable: bool) -> list[str]:
        """Evict pods; return what the drain waits for. Pods on an unreachable node never end and are not waited for."""
        waiting: dict[str, list[str]] = defaultdict(list)
        for pod in pods:
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            if is_deleting(pod):
                if not is_unreachable:
                    waiting["deletionTimestamp set, but still not removed from the Node"].append(name)
                continue
            try:
                await self._objects.client.evict(pod["metadata"]["name"], pod["metadata"]["namespace"])
                waiting["deletionTimestamp set, but still not removed from the Node"].append(name)
            except NotFound:
                continue
            except TooManyRequests as refusal:
                waiting[f"{_VIOLATES}{' '.join(one.message for one in refusal.causes)}"].append(name)
            except ApiError as refusal:
                waiting[f"failed to evict Pod, {refusal.message}"].append(name)
        return [f"* {_named(pods)}: {text}" for text, pods in waiting.items()]

    async def _update_status(self, obj: Object, reason: str, message: str, fields: Object | None = None) -> None:
        updates = [NewCondition(names.DELETING, True, reason, message), *_not_ready_conditions()]
        await self._objects.update_status(obj, {"phase": "Deleting", **(fields or {})}, updates)


def _deletes_node(entity: Entity) -> bool:
    cluster = entity.related("cluster-of-machine")
    if cluster is None or is_deleting(cluster.object) or not cluster.count("control-plane-machines"):
        return False
    return "nodeRef" in (entity.object.get("status") or {})


def _not_ready_conditions() -> list[NewCondition]:
    return [
        NewCondition(names.READY, False, "NotReady", "Deleting"),
        NewCondition(names.AVAILABLE, False, "NotAvailable"),
    ]


def _is_evictable(pod: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    is_finished = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if MIRROR_POD in annotations_of(pod) or labels_of(pod).get(names.DRAIN, "").lower() == "skip":
        return False
    return is_finished or not any(one.get("controller") and one["kind"] == "DaemonSet" for one in owners)


def _is_unreachable(node: Object) -> bool:
    found = (node.get("status") or {}).get("conditions") or ()
    return any(one["type"] == names.READY and one["status"] == "Unknown" for one in found)


def _named(pods: Sequence[str]) -> str:
    return f"Pod{'s' if len(pods) > 1 else ''} {', '.join(sorted(pods))}"
