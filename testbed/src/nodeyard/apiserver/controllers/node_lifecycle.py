"""The node lifecycle controller: detects lost nodes, and taints nodes by their conditions.

The conditions of a node without a heartbeat for 50 seconds become Unknown, and its pods are no longer ready. NoSchedule
taints follow the conditions at once; NoExecute taints are added at the rate of the node's zone. The taint eviction
controller evicts.
"""

from __future__ import annotations

import math
from typing import Final, Literal, NamedTuple

import msgspec

from nodeyard.apiserver.controllers.conditions import find, with_pod_condition
from nodeyard.apiserver.controllers.controller import Cluster, Controller, is_gone, service_account
from nodeyard.apiserver.controllers.metadata import LEASES, NODES, PODS
from nodeyard.apiserver.controllers.node_facts import NodeFacts, Taint, decode_node
from nodeyard.apiserver.controllers.node_health import NodeHealth
from nodeyard.apiserver.controllers.node_taints import (
    evicting_key,
    has_evicting,
    no_schedule_keys,
    with_no_execute,
    with_no_schedule,
)
from nodeyard.apiserver.controllers.node_zones import NodeZones
from nodeyard.apiserver.controllers.pod_facts import PodsByNode
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Event, Key
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.kube.timestamps import format_rfc3339

_POSTED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_TAINTING_PERIOD: Final = 0.1
"""A delay, so that nodes that are lost together are counted before the first of them is tainted."""


class Task(NamedTuple):
    """A node to check, a zone that may have a node to taint, or a node whose pods become not ready."""

    what: Literal["node", "zone", "pods"]
    name: str


class NodeLifecycleController(Controller[Task]):
    name = "node-lifecycle-controller"
    user = service_account("node-controller")
    watches = frozenset((NODES, LEASES, PODS))

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._health = NodeHealth(cluster.clock)
        self._zones = NodeZones()
        self._pods = PodsByNode()
        self._was_ready: dict[str, bool] = {}
        self._is_fully_disrupted = False

    def observe(self, resource: GroupResource, event: Event) -> None:
        if resource == NODES:
            if event.type == "DELETED":
                self._health.forget(event.stored.key.name)
            self.queue.add(Task("node", event.stored.key.name))
        elif resource == PODS:
            self._pods.observe(event)
        elif event.stored.key.namespace == LEASE_NAMESPACE:
            self._health.observe_lease(event)

    async def reconcile(self, key: Task) -> float | None:
        if key.what == "zone":
            return await self._release(key.name)
        if key.what == "pods":
            return await self._mark_pods(key.name)
        return await self._look(key.name)

    # nodes

    async def _look(self, name: str) -> float | None:
        stored = self.store.get(NODES, "", name)
        if stored is None:
            self._forget(name)
            return None
        facts = decode_node(stored.raw)
        self._health.observe_node(name, facts)
        has_heartbeat = self.cluster.silent_nodes not in (facts.metadata.annotations or {})
        remaining = self._health.remaining(name) if has_heartbeat else math.inf
        if remaining <= 0 and (facts.ready is None or facts.ready.status != "Unknown"):
            await self._declare_lost(stored.object())
            return None
        self._count(name, facts)
        await self._taint(name, facts)
        return remaining if 0 < remaining < math.inf else None

    async def _declare_lost(self, node: Object) -> None:
        now = format_rfc3339(self.now)
        status = node.get("status") or {}
        conditions = list(status.get("conditions") or ())
        for kind in _POSTED:
            current = find(conditions, kind)
            if current is None:
                conditions.append(_never_posted(kind, node["metadata"]["creationTimestamp"], now))
            elif current.get("status") != "Unknown":
                lost = {
                    **current,
                    "status": "Unknown",
                    "reason": "NodeStatusUnknown",
                    "message": "Kubelet stopped posting node status.",
                    "lastTransitionTime": now,
                }
                conditions = [lost if condition is current else condition for condition in conditions]
        url = self.url(NODES, Key("", node["metadata"]["name"]), "status")
        await self.call("PUT", url, {**node, "status": {**status, "conditions": conditions}})

    def _forget(self, name: str) -> None:
        self._zones.forget(name)
        self._was_ready.pop(name, None)
        self._update_disruption()

    def _count(self, name: str, facts: NodeFacts) -> None:
        is_ready = facts.ready is not None and facts.ready.status == "True"
        if facts.is_excluded_from_disruption:
            self._zones.forget(name)
        else:
            self._zones.set(name, facts.zone, is_ready=is_ready)
        self._update_disruption()
        if self._was_ready.get(name, False) and not is_ready:
            self.queue.add(Task("pods", name))
        self._was_ready[name] = is_ready

    def _update_disruption(self) -> None:
        """Remove all NoExecute taints when the last node is lost; start anew when one returns."""
        is_fully_disrupted = self._zones.is_fully_disrupted
        if is_fully_disrupted == self._is_fully_disrupted:
            return
        self._is_fully_disrupted = is_fully_disrupted
        if not is_fully_disrupted:
            self._health.reset()
        for node in self._zones.nodes():
            self.queue.add(Task("node", node))

    # taints

    async def _taint(self, name: str, facts: NodeFacts) -> None:
        now = format_rfc3339(self.now)
        keys = no_schedule_keys(facts.conditions, is_unschedulable=bool(facts.spec.unschedulable))
        taints = with_no_schedule(facts.taints, keys, now)
        if facts.ready is not None:
            taints = self._with_evicting(name, facts, taints, now)
        change: Object = {}
        if list(facts.taints) != taints:
            change["spec"] = {"taints": _listed(taints)}
        if labels := facts.outdated_labels():
            change["metadata"] = {"labels": labels}
        if change:
            await self._patch(name, facts, change)

    def _with_evicting(self, name: str, facts: NodeFacts, taints: list[Taint], now: str) -> list[Taint]:
        """Remove or replace the NoExecute taint at once; a first one waits for the zone's rate."""
        key = evicting_key(facts.ready.status) if facts.ready else None
        if key is None or self._is_fully_disrupted:
            self._zones.stop_waiting(name)
            return with_no_execute(taints, None, now)
        if has_evicting(taints):
            return with_no_execute(taints, key, now)
        self._zones.wait(name, facts.zone)
        self.queue.add_after(Task("zone", facts.zone), _TAINTING_PERIOD)
        return taints

    async def _release(self, zone: str) -> float | None:
        node, again = self._zones.release(zone, self.clock.monotonic())
        stored = self.store.get(NODES, "", node) if node is not None else None
        if node is not None and stored is not None:
            facts = decode_node(stored.raw)
            key = evicting_key(facts.ready.status) if facts.ready else None
            taints = with_no_execute(facts.taints, key, format_rfc3339(self.now))
            if list(facts.taints) != taints:
                await self._patch(node, facts, {"spec": {"taints": _listed(taints)}})
        return again

    async def _patch(self, name: str, facts: NodeFacts, change: Object) -> None:
        """Write the taints with optimistic locking, because they are one atomic list."""
        metadata = {**change.get("metadata", {}), "resourceVersion": facts.metadata.resource_version}
        await self.patch(self.url(NODES, Key("", name)), {**change, "metadata": metadata})

    # pods

    async def _mark_pods(self, node: str) -> float | None:
        for key in self._pods.on(node):
            stored = self.store.get(PODS, *key)
            if stored is None or b'"Ready"' not in stored.raw:
                continue
            pod = stored.object()
            ready = find((pod.get("status") or {}).get("conditions"), "Ready")
            if ready is None or ready.get("status") == "False":
                continue
            conditions = with_pod_condition(pod["status"]["conditions"], {**ready, "status": "False"}, self.now)
            try:
                changed = {**pod, "status": {**pod["status"], "conditions": conditions}}
                await self.call("PUT", self.url(PODS, key, "status"), changed)
            except ApiError as error:
                if not is_gone(error):
                    raise
        return None


def _never_posted(kind: str, created: str, now: str) -> Object:
    return {
        "type": kind,
        "status": "Unknown",
        "lastHeartbeatTime": created,
        "lastTransitionTime": now,
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
    }


def _listed(taints: list[Taint]) -> Json:
    return msgspec.to_builtins(taints) if taints else None
