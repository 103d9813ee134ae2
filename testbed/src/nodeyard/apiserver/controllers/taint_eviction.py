"""The taint eviction controller: deletes pods that do not tolerate a NoExecute taint of their node, at their time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from nodeyard.apiserver.controllers.conditions import with_pod_condition
from nodeyard.apiserver.controllers.controller import Cluster, Controller, service_account
from nodeyard.apiserver.controllers.metadata import NODES, PODS
from nodeyard.apiserver.controllers.node_facts import Taint, decode_node
from nodeyard.apiserver.controllers.node_taints import NO_EXECUTE
from nodeyard.apiserver.controllers.pod_facts import DISRUPTION_TARGET, PodsByNode, node_of
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Event, Key

FOREVER = float("inf")


class Toleration(msgspec.Struct, frozen=True, rename="camel"):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def covers(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.value == taint.value


def seconds_tolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float:
    """Seconds that a pod may stay: none if a taint is not tolerated, else the shortest tolerationSeconds."""
    shortest = FOREVER
    for taint in taints:
        used = next((toleration for toleration in tolerations if toleration.covers(taint)), None)
        if used is None:
            return 0.0
        if used.toleration_seconds is not None:
            shortest = min(shortest, max(used.toleration_seconds, 0))
    return shortest


class _Metadata(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    tolerations: tuple[Toleration, ...] | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


_EVICTS: Final = b'"effect":"NoExecute"'
"""A node with such a taint contains these bytes; searching for them is cheaper than decoding."""

_decode_pod = msgspec.json.Decoder(_Pod).decode


class Task(NamedTuple):
    """A node whose taints changed, or a pod on a tainted node."""

    what: Literal["node", "pod"]
    key: Key


class TaintEvictionController(Controller[Task]):
    name = "taint-eviction-controller"
    user = service_account("node-controller")
    watches = frozenset((NODES, PODS))

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._tainted: dict[str, tuple[Taint, ...]] = {}
        self._pods = PodsByNode()
        self._ends: dict[Key, float] = {}
        """The time at which a pod is deleted. Later changes of taints do not move it."""

    def observe(self, resource: GroupResource, event: Event) -> None:
        key = event.stored.key
        if resource == NODES:
            if event.type == "DELETED":
                self._tainted.pop(key.name, None)
            elif key.name in self._tainted or _EVICTS in event.stored.raw:
                self.queue.add(Task("node", key))
            return
        self._pods.observe(event)
        if event.type == "DELETED":
            self._ends.pop(key, None)
        elif self._tainted and node_of(event) in self._tainted:
            self.queue.add(Task("pod", key))

    async def reconcile(self, key: Task) -> float | None:
        if key.what == "node":
            self._look(key.key)
            return None
        return await self._judge(key.key)

    def _look(self, key: Key) -> None:
        stored = self.store.get(NODES, *key)
        facts = decode_node(stored.raw) if stored else None
        taints = tuple(taint for taint in facts.taints if taint.effect == NO_EXECUTE) if facts else ()
        if self._tainted.get(key.name, ()) == taints:
            return
        if taints:
            self._tainted[key.name] = taints
        else:
            self._tainted.pop(key.name, None)
        for pod in self._pods.on(key.name):
            self.queue.add(Task("pod", pod))

    async def _judge(self, key: Key) -> float | None:
        """Delete the pod, or return when to requeue it."""
        stored = self.store.get(PODS, *key)
        pod = _decode_pod(stored.raw) if stored else None
        if pod is None or pod.metadata.deletion_timestamp is not None:
            self._ends.pop(key, None)
            return None
        allowed = seconds_tolerated(self._tainted.get(pod.spec.node_name, ()), pod.spec.tolerations or ())
        if allowed == FOREVER:
            self._ends.pop(key, None)
            return None
        now = self.clock.monotonic()
        remaining = self._ends.setdefault(key, now + allowed) - now
        if allowed > 0 and remaining > 0:
            return remaining
        await self._delete(key)
        return None

    async def _delete(self, key: Key) -> None:
        stored = self.store.get(PODS, *key)
        if stored is None:
            return
        pod = stored.object()
        status = pod.get("status") or {}
        condition = {
            "type": DISRUPTION_TARGET,
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
        }
        conditions = with_pod_condition(status.get("conditions"), condition, self.now)
        if conditions is not None:
            changed = {**pod, "status": {**status, "conditions": conditions}}
            await self.call("PUT", self.url(PODS, key, "status"), changed)
        await self.call("DELETE", self.url(PODS, key))
