"""A scheduler small enough to be obvious: the first good node of a few that fit.

It looks at what keeps a pod off a node (taints, cordon, nodeSelector, required node affinity, free resources) and at
nothing that merely prefers. Like the real one it begins each search where the last ended and stops when it has seen
enough fitting nodes, so that a pod costs about the same in a large fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.resources import PODS
from nodeyard.kube import names
from nodeyard.kube.json import Object
from nodeyard.kube.node_affinity import Affinity, NodeMatcher, node_matcher
from nodeyard.kube.taints import is_tolerated, taints_of
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.process.clock import Clock
from nodeyard.sim import pod_requests
from nodeyard.sim.executor import NotYet
from nodeyard.sim.index import Entity
from nodeyard.sim.stage_format import Kind

NODE = Kind("v1", "Node")
POD = Kind("v1", "Pod")
ENOUGH: Final = 8
LOOK_AGAIN_SECONDS: Final = 1.0
_UNSCHEDULABLE_TAINT = {"key": names.TAINT_UNSCHEDULABLE, "effect": "NoSchedule"}

_PodKey = tuple[str, str]


@dataclass(slots=True)
class _Node:
    name: str
    object: Object
    allocatable: pod_requests.Amounts
    used: pod_requests.Amounts

    @property
    def labels(self) -> Mapping[str, str]:
        return self.object["metadata"].get("labels") or {}

    def free_share(self) -> float:
        """How empty the node is: the smaller of its free shares of CPU and memory."""
        return min(self._share("cpu"), self._share("memory"))

    def has_room(self, wanted: pod_requests.Amounts) -> bool:
        return all(
            value <= self.allocatable.get(name, 0) - self.used.get(name, 0) for name, value in wanted.items() if value
        )

    def _share(self, name: str) -> float:
        total = self.allocatable.get(name, 0)
        return 1 - self.used.get(name, 0) / total if total else 0.0


class Scheduler:
    """Fed with every change of nodes and pods; `bind` places one pod."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._nodes: dict[str, _Node] = {}
        self._ring: list[str] = []
        self._position = 0
        self._placed: dict[_PodKey, tuple[str, pod_requests.Amounts]] = {}
        self._used: dict[str, pod_requests.Amounts] = {}
        """By node name; a pod may be seen before its node."""

    def see(self, kind: Kind, obj: Object, is_there: bool) -> None:
        if kind == NODE:
            self._see_node(obj, is_there)
        elif kind == POD:
            self._see_pod(obj, is_there)

    async def bind(self, pod: Entity) -> None:
        """Place the pod; NotYet when nothing fits, which the pod then says of itself."""
        node = self.choose(pod.object)
        if node is None:
            await self._report(pod)
            raise NotYet(LOOK_AGAIN_SECONDS, "no node fits", grows=False)
        key = (pod.key.namespace, pod.key.name)
        self._place(key, node, pod_requests.of_pod(pod.object))
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.key.name, "namespace": pod.key.namespace, "uid": pod.object["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._client.create_part(PODS, pod.key.name, "binding", binding, pod.key.namespace)
        except BaseException:
            self._unplace(key)
            raise

    def choose(self, pod: Object) -> str | None:
        """The emptiest of the first nodes found that fit."""
        wanted, is_wanted = pod_requests.of_pod(pod), _wanted_nodes(pod)
        fitting: list[_Node] = []
        for step in range(len(self._ring)):
            node = self._nodes[self._ring[(self._position + step) % len(self._ring)]]
            if node.has_room(wanted) and is_wanted(node.labels, node.name) and _is_let_on(pod, node.object):
                fitting.append(node)
                if len(fitting) == ENOUGH:
                    break
        if not fitting:
            return None
        self._position = (self._position + step + 1) % len(self._ring)
        return max(fitting, key=_emptiest).name

    async def _report(self, pod: Entity) -> None:
        conditions = (pod.object.get("status") or {}).get("conditions") or ()
        if any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions):
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": f"0/{len(self._nodes)} nodes are available.",
            "lastTransitionTime": format_rfc3339(self._clock.now()),
        }
        patch = {"status": {"conditions": [*conditions, condition]}}
        await self._client.patch(PODS, pod.key.name, patch, pod.key.namespace, subresource="status")

    def _see_node(self, obj: Object, is_there: bool) -> None:
        name = obj["metadata"]["name"]
        known = self._nodes.get(name)
        if not is_there:
            if known is not None:
                del self._nodes[name]
                self._ring.remove(name)
            return
        allocatable = pod_requests.amounts((obj.get("status") or {}).get("allocatable"))
        if known is not None:
            known.object, known.allocatable = obj, allocatable
            return
        self._nodes[name] = _Node(name, obj, allocatable, self._used.setdefault(name, {}))
        self._ring.append(name)

    def _see_pod(self, obj: Object, is_there: bool) -> None:
        key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        node = obj["spec"].get("nodeName")
        is_over = (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if not is_there or is_over:
            self._unplace(key)
        elif node and self._placed.get(key, ("", {}))[0] != node:
            self._place(key, node, pod_requests.of_pod(obj))

    def _place(self, key: _PodKey, node: str, amounts: pod_requests.Amounts) -> None:
        self._unplace(key)
        self._placed[key] = node, amounts
        pod_requests.add(self._used.setdefault(node, {}), amounts)

    def _unplace(self, key: _PodKey) -> None:
        node, amounts = self._placed.pop(key, ("", {}))
        if amounts:
            pod_requests.add(self._used[node], amounts, sign=-1)


def _emptiest(node: _Node) -> tuple[float, str]:
    return node.free_share(), node.name


def _is_let_on(pod: Object, node: Object) -> bool:
    tolerations = pod["spec"].get("tolerations") or []
    taints = taints_of(node)
    if (node.get("spec") or {}).get("unschedulable"):
        taints = [*taints, _UNSCHEDULABLE_TAINT]
    return is_tolerated(taints, tolerations)


def _wanted_nodes(pod: Object) -> NodeMatcher:
    spec = pod["spec"]
    affinity = msgspec.convert(spec.get("affinity") or {}, Affinity)
    return node_matcher(spec.get("nodeSelector") or {}, affinity.required_nodes)
