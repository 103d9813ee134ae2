"""A minimal scheduler: binds a pod to the emptiest of the first few nodes that fit.

It knows what keeps a pod off a node (taints, cordon, nodeSelector, required node affinity, free resources) and no
preferences. Like kube-scheduler it starts each search where the last ended and stops after enough fitting nodes, so a
pod costs about the same in a large fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.resources import PODS
from nodeyard.kube import names, pod_requests
from nodeyard.kube.json import Object
from nodeyard.kube.node_affinity import Affinity, NodeMatcher, node_matcher
from nodeyard.kube.quantity import NANO
from nodeyard.kube.resource_list import PODS as POD_SLOTS
from nodeyard.kube.resource_list import Amounts, add, parse_amounts, round_up
from nodeyard.kube.taints import is_tolerated, taints_of
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.process.clock import Clock
from nodeyard.sim.conditions import Subject
from nodeyard.sim.index import Entity, Key
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.stage_set import Reconciler

NODE = Kind("v1", "Node")
POD = Kind("v1", "Pod")
ENOUGH: Final = 8
UNSCHEDULABLE: Final = "unschedulable"
"""Mark of a pod that fits no node, until a change may have made room."""
_UNSCHEDULABLE_TAINT = {"key": names.TAINT_UNSCHEDULABLE, "effect": "NoSchedule"}

_PodKey = tuple[str, str]


@dataclass(slots=True)
class _Node:
    name: str
    object: Object
    allocatable: Amounts
    used: Amounts

    @property
    def labels(self) -> Mapping[str, str]:
        return self.object["metadata"].get("labels") or {}

    def free_share(self) -> float:
        """Return the smaller of the free shares of CPU and memory."""
        return min(self._share("cpu"), self._share("memory"))

    def has_room(self, wanted: Amounts) -> bool:
        return all(
            value <= self.allocatable.get(name, 0) - self.used.get(name, 0) for name, value in wanted.items() if value
        )

    def _share(self, name: str) -> float:
        total = self.allocatable.get(name, 0)
        return 1 - self.used.get(name, 0) / total if total else 0.0


class Scheduler:
    """Keeps track of nodes and pods (`observe`) and binds pods (`bind`)."""

    def __init__(self, client: Client, clock: Clock, mark: Callable[[Key, str, bool], None]) -> None:
        self._client = client
        self._clock = clock
        self._mark = mark
        self._waiting: dict[Key, None] = {}
        self._nodes: dict[str, _Node] = {}
        self._ring: list[str] = []
        self._position = 0
        self._placed: dict[_PodKey, tuple[str, Amounts]] = {}
        self._used: dict[str, Amounts] = {}
        """By name of the node; a pod may be seen before its node."""
        self.reconcilers = (Reconciler("pod-schedule", POD, self.bind, _is_unscheduled, delay=(0.01, 0.1), once=True),)

    def observe(self, kind: Kind, obj: Object, exists: bool) -> None:
        if kind == NODE:
            self._observe_node(obj, exists)
        elif kind == POD:
            self._observe_pod(obj, exists)

    async def bind(self, pod: Entity) -> None:
        """Bind the pod; if no node fits, set its condition PodScheduled and let it wait for room."""
        node = self.choose(pod.object)
        if node is None:
            self._waiting[pod.key] = None
            self._mark(pod.key, UNSCHEDULABLE, True)
            await self._set_unschedulable(pod)
            return
        key = (pod.key.namespace, pod.key.name)
        self._place(key, node, requests_of(pod.object))
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
        """Return the emptiest of the first nodes found that fit."""
        wanted, is_wanted = requests_of(pod), _wanted_nodes(pod)
        fitting: list[_Node] = []
        for step in range(len(self._ring)):
            node = self._nodes[self._ring[(self._position + step) % len(self._ring)]]
            if node.has_room(wanted) and is_wanted(node.labels, node.name) and _is_tolerating(pod, node.object):
                fitting.append(node)
                if len(fitting) == ENOUGH:
                    break
        if not fitting:
            return None
        self._position = (self._position + step + 1) % len(self._ring)
        return max(fitting, key=_emptiest).name

    async def _set_unschedulable(self, pod: Entity) -> None:
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

    def _observe_node(self, obj: Object, exists: bool) -> None:
        name = obj["metadata"]["name"]
        known = self._nodes.get(name)
        if not exists:
            if known is not None:
                del self._nodes[name]
                self._ring.remove(name)
            return
        allocatable = amounts_of((obj.get("status") or {}).get("allocatable"))
        if known is not None:
            is_relevant = (known.allocatable, _placement(known.object)) != (allocatable, _placement(obj))
            known.object, known.allocatable = obj, allocatable
            if is_relevant:
                self._make_room()
            return
        self._make_room()
        self._nodes[name] = _Node(name, obj, allocatable, self._used.setdefault(name, {}))
        self._ring.append(name)

    def _observe_pod(self, obj: Object, exists: bool) -> None:
        key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        node = obj["spec"].get("nodeName")
        is_over = (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if not exists or is_over:
            self._unplace(key)
        elif node and self._placed.get(key, ("", {}))[0] != node:
            self._place(key, node, requests_of(obj))

    def _place(self, key: _PodKey, node: str, amounts: Amounts) -> None:
        self._unplace(key)
        self._placed[key] = node, amounts
        add(self._used.setdefault(node, {}), amounts)

    def _unplace(self, key: _PodKey) -> None:
        node, amounts = self._placed.pop(key, ("", {}))
        if amounts:
            add(self._used[node], {name: -amount for name, amount in amounts.items()})
            self._make_room()

    def _make_room(self) -> None:
        """Try the pods that fit nowhere again."""
        waiting, self._waiting = self._waiting, {}
        for key in waiting:
            self._mark(key, UNSCHEDULABLE, False)


def _is_unscheduled(pod: Subject) -> bool:
    metadata, spec = pod.object["metadata"], pod.object["spec"]
    return (
        spec.get("nodeName") is None
        and spec.get("schedulerName", "default-scheduler") == "default-scheduler"
        and "deletionTimestamp" not in metadata
        and not spec.get("schedulingGates")
        and not pod.is_marked(UNSCHEDULABLE)
        and (pod.object.get("status") or {}).get("phase", "Pending") == "Pending"
    )


def _placement(node: Object) -> tuple[Any, ...]:
    """Return what the placement of pods depends on, but for resources."""
    spec = node.get("spec") or {}
    return node["metadata"].get("labels"), spec.get("taints"), spec.get("unschedulable")


def amounts_of(resources: Mapping[str, str] | None) -> Amounts:
    """Parse a ResourceList, rounded as schedulers count."""
    return round_up(parse_amounts(resources))


def requests_of(pod: Object) -> Amounts:
    """Return the requests of a pod, and one of the node's pod slots."""
    return {**pod_requests.of_pod(msgspec.convert(pod, pod_requests.RequestingPod)), POD_SLOTS: NANO}


def _emptiest(node: _Node) -> tuple[float, str]:
    return node.free_share(), node.name


def _is_tolerating(pod: Object, node: Object) -> bool:
    tolerations = pod["spec"].get("tolerations") or []
    taints = taints_of(node)
    if (node.get("spec") or {}).get("unschedulable"):
        taints = [*taints, _UNSCHEDULABLE_TAINT]
    return is_tolerated(taints, tolerations)


def _wanted_nodes(pod: Object) -> NodeMatcher:
    spec = pod["spec"]
    affinity = msgspec.convert(spec.get("affinity") or {}, Affinity)
    return node_matcher(spec.get("nodeSelector") or {}, affinity.required_nodes)
