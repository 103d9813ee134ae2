"""The deletion of a machine, step by step as Cluster API takes them.

    hooks ─▶ drain ─▶ hooks ─▶ infrastructure machine ─▶ KubeadmConfig ─▶ node ─▶ gone

Each look at the machine goes as far as it can. The node is left alone when the whole cluster goes, when there is no
control plane machine to speak for it, and when the machine has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from nodeyard.client.errors import ApiError, NotFound, TooManyRequests
from nodeyard.kube.json import Object
from nodeyard.kube.names import MIRROR_POD
from nodeyard.kube.timestamps import parse_rfc3339
from nodeyard.sim.executor import NotYet
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.facts import Seen, annotations_of, is_deleting, labels_of
from nodeyard.sim.machines.workbench import Workbench

DRAIN_RETRY_SECONDS: Final = 20.0
_GONE_SECONDS: Final = 0.2
_VIOLATES: Final = "cannot evict pod as it would violate the pod's disruption budget. "


class Deletion:
    def __init__(self, bench: Workbench, drain_retry: float = DRAIN_RETRY_SECONDS) -> None:
        self._bench = bench
        self._drain_retry = drain_retry

    async def proceed(self, entity: Entity) -> None:
        obj = entity.object
        has_node = _minds_node(entity)
        if has_node:
            await self._hooks(obj, names.PRE_DRAIN_HOOK, "WaitingForPreDrainHook", "pre-drain")
            await self._drain(entity)
        await self._hooks(obj, names.PRE_TERMINATE_HOOK, "WaitingForPreTerminateHook", "pre-terminate")
        await self._remove(obj, obj["spec"]["infrastructureRef"], "WaitingForInfrastructureDeletion")
        if reference := (obj["spec"].get("bootstrap") or {}).get("configRef"):
            await self._remove(obj, reference, "WaitingForBootstrapDeletion")
        if has_node:
            node = await self._bench.get(names.NODE, obj["status"]["nodeRef"]["name"])
            if node is not None:
                await self._bench.delete(node)
        await self._bench.finalize(obj, names.MACHINE_FINALIZER, is_held=False)

    async def _hooks(self, obj: Object, prefix: str, reason: str, which: str) -> None:
        hooks = sorted(key for key in annotations_of(obj) if key.startswith(prefix))
        if hooks:
            await self._tell(obj, reason, f"Waiting for {which} hooks to succeed (hooks: {','.join(hooks)})")
            raise NotYet(self._drain_retry, reason, grows=False)

    async def _remove(self, obj: Object, reference: Object, reason: str) -> None:
        found = await self._bench.follow(reference, obj["metadata"]["namespace"])
        if found is None:
            return
        await self._bench.delete(found)
        if await self._bench.follow(reference, obj["metadata"]["namespace"]) is not None:
            await self._tell(obj, reason, f"Waiting for {reference['kind']} to be deleted")
            raise NotYet(_GONE_SECONDS, reason, grows=False)

    async def _drain(self, entity: Entity) -> None:
        obj = entity.object
        node = entity.related("node-of-machine")
        if node is None or names.EXCLUDE_DRAINING in annotations_of(obj) or self._is_late(obj):
            return
        if await self._bench.follow(obj["spec"]["infrastructureRef"], obj["metadata"]["namespace"]) is None:
            return
        since = ((obj.get("status") or {}).get("deletion") or {}).get("nodeDrainStartTime") or self._bench.now()
        await self._bench.patch(node.object, {"spec": {"unschedulable": True}})
        pods = [one.object for one in entity.index.pointing("node-of-pod", node)]
        waiting = await self._evict([pod for pod in pods if _must_leave(pod)], is_silent=_is_unreachable(node.object))
        if waiting:
            text = "\n".join((f"Drain not completed yet (started at {since}):", *waiting))
            await self._tell(obj, "DrainingNode", text, {"deletion": {"nodeDrainStartTime": since}})
            raise NotYet(self._drain_retry, text, grows=False)

    def _is_late(self, obj: Object) -> bool:
        timeout = (obj["spec"].get("deletion") or {}).get("nodeDrainTimeoutSeconds") or 0
        since = ((obj.get("status") or {}).get("deletion") or {}).get("nodeDrainStartTime")
        if not timeout or since is None:
            return False
        return (self._bench.clock.now() - parse_rfc3339(since)).total_seconds() >= timeout

    async def _evict(self, pods: Sequence[Object], *, is_silent: bool) -> list[str]:
        """What is waited for, as lines; a pod on an unreachable node never ends, so nobody waits for its end."""
        waiting: dict[str, list[str]] = defaultdict(list)
        for pod in pods:
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            if is_deleting(pod):
                if not is_silent:
                    waiting["deletionTimestamp set, but still not removed from the Node"].append(name)
                continue
            try:
                await self._bench.client.evict(pod["metadata"]["name"], pod["metadata"]["namespace"])
                waiting["deletionTimestamp set, but still not removed from the Node"].append(name)
            except NotFound:
                continue
            except TooManyRequests as refusal:
                waiting[f"{_VIOLATES}{' '.join(one.message for one in refusal.causes)}"].append(name)
            except ApiError as refusal:
                waiting[f"failed to evict Pod, {refusal.message}"].append(name)
        return [f"* {_named(pods)}: {text}" for text, pods in waiting.items()]

    async def _tell(self, obj: Object, reason: str, message: str, told: Object | None = None) -> None:
        seen = [Seen(names.DELETING, True, reason, message), *_unready()]
        await self._bench.report(obj, {"phase": "Deleting", **(told or {})}, seen)


def _minds_node(entity: Entity) -> bool:
    cluster = entity.related("cluster-of-machine")
    if cluster is None or is_deleting(cluster.object) or not cluster.count("control-plane-machines"):
        return False
    return "nodeRef" in (entity.object.get("status") or {})


def _unready() -> list[Seen]:
    return [Seen(names.READY, False, "NotReady", "Deleting"), Seen(names.AVAILABLE, False, "NotAvailable")]


def _must_leave(pod: Object) -> bool:
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
