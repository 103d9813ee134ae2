"""Scenarios: a fleet, events, faults and assertions in one YAML file. docs/rehearse.md describes each key.

fleet:
  nodes: [{count: 30, prefix: web, zones: [a, b, c], class: large}]
events:
- {at: 0s, apply: [{apiVersion: …}]}
faults: [zone-lost=a@10m]
assert: [evicted < 50]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import UUID, uuid5

import msgspec

from nodeyard.app import files
from nodeyard.bundle.model import GVR, ClusterState, Objects
from nodeyard.kube.json import Object
from nodeyard.kube.manifests import ManifestError, load
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.rehearsal.engine import Event
from nodeyard.sim.nodes import NodeShape, node, spare_node
from nodeyard.sim.stage_format import seconds

NODES: Final = GVR("", "v1", "nodes")
MOST_NODES: Final = 50_000
DEFAULT_NAMESPACE: Final = "default"
_UIDS: Final = UUID("4f7c9e61-2a53-4a3c-8f0d-8f7a55a6e2b1")


class ScenarioError(ValueError):
    """A scenario that cannot be used; the text names the file and the fault in one line."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of the parts of a scenario: an unknown key is an error."""


class NodeGroup(_Part, frozen=True, rename={"node_class": "class"}):
    """Nodes that are alike, round robin over the zones."""

    count: int
    prefix: str = "node"
    zones: tuple[str, ...] = ("zone-a", "zone-b", "zone-c")
    node_class: str = "sim.4xlarge"
    cpu: int = 16
    memory: int = 64
    """GiB."""
    pods: int = 110
    labels: dict[str, str] = {}
    taints: list[Object] = []
    spare: bool = False
    """Labelled and tainted as spare nodes."""


class Workload(_Part, frozen=True):
    """A ReplicaSet, with a PodDisruptionBudget if `minAvailable` is set."""

    name: str
    replicas: int
    namespace: str = DEFAULT_NAMESPACE
    cpu: str = "100m"
    memory: str = "128Mi"
    grace: int = 30
    """terminationGracePeriodSeconds."""
    min_available: int | None = None
    node_selector: dict[str, str] = {}
    tolerations: list[Object] = []


class Cluster(_Part, frozen=True):
    nodes: list[NodeGroup] = []
    workloads: list[Workload] = []
    objects: list[Object] = []
    """Manifests that are there before the first event."""
    files: list[str] = []
    """Files with such manifests, relative to the scenario."""


class Fleet(Cluster, frozen=True):
    leaves: dict[str, Cluster] = {}
    """Leaf clusters by the name of their Cluster in the root."""


class EventSpec(_Part, frozen=True):
    at: str | float = 0.0
    apply: list[Object] = []
    files: list[str] = []
    delete: list[Object] = []


class Scenario(_Part, frozen=True, rename={"assertions": "assert"}):
    fleet: Fleet = Fleet()
    events: list[EventSpec] = []
    faults: list[str] = []
    assertions: list[str] = []
    capabilities: list[str] = []
    profile: str = ""
    until: str = ""
    seed: int | None = None
    approve: bool = False
    max_disruption: str = msgspec.field(name="maxDisruption", default="")


def read_scenario(path: Path) -> Scenario:
    try:
        return msgspec.convert(load(path.read_text()), Scenario)
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    except (ManifestError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: {error}") from None


def events_of(scenario: Scenario, path: Path) -> list[Event]:
    return [
        Event(
            seconds(each.at),
            apply=[*_named(each.apply, path), *_read(each.files, path)],
            delete=list(_named(each.delete, path)),
        )
        for each in scenario.events
    ]


def build(cluster: Cluster, now: datetime) -> ClusterState:
    """Return a cluster with the nodes of the groups."""
    total = sum(group.count for group in cluster.nodes)
    if total > MOST_NODES:
        raise ScenarioError(f"fleet: {total} nodes are more than {MOST_NODES}")
    raw = [msgspec.json.encode(each) for each in _nodes(cluster.nodes, now)]
    return ClusterState("", objects={NODES: Objects(raw)})


def setup_of(cluster: Cluster, path: Path) -> list[tuple[str, Object]]:
    """Return the manifests that are applied before the first event: namespaces, the user's, and the workloads."""
    given = [*_named(cluster.objects, path), *_read(cluster.files, path)]
    namespaces = dict.fromkeys(each.namespace for each in cluster.workloads if each.namespace != DEFAULT_NAMESPACE)
    known = {obj["metadata"]["name"] for _, obj in given if obj["kind"] == "Namespace"}
    created: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in namespaces
        if name not in known
    ]
    workloads = [obj for each in cluster.workloads for obj in _workload(each)]
    return [*_named(created, path), *given, *_named(workloads, path)]


def _nodes(groups: Sequence[NodeGroup], now: datetime) -> Iterable[Object]:
    for group in groups:
        shape = NodeShape(cpu=group.cpu, memory_gi=group.memory, pods=group.pods, instance_type=group.node_class)
        for number in range(group.count):
            name, zone = f"{group.prefix}-{number:04d}", group.zones[number % len(group.zones)]
            if group.spare:
                obj = spare_node(name, now, zone=zone, shape=shape, labels=group.labels)
            else:
                obj = node(name, now, zone=zone, shape=shape, labels=group.labels, taints=group.taints)
            yield _ready(obj, now)


def _ready(obj: Object, now: datetime) -> Object:
    at = format_rfc3339(now)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
             "lastHeartbeatTime": at, "lastTransitionTime": at}  # fmt: skip
    conditions = [each for each in obj["status"].get("conditions") or () if each["type"] != "Ready"]
    metadata = {**obj["metadata"], "uid": str(uuid5(_UIDS, obj["metadata"]["name"])), "creationTimestamp": at}
    return {**obj, "metadata": metadata, "status": {**obj["status"], "conditions": [*conditions, ready]}}


def _workload(workload: Workload) -> Iterable[Object]:
    metadata = {"name": workload.name, "namespace": workload.namespace}
    labels = {"app": workload.name}
    requests = {"cpu": workload.cpu, "memory": workload.memory}
    spec: Object = {
        "terminationGracePeriodSeconds": workload.grace,
        "containers": [{"name": "main", "image": "sim", "resources": {"requests": requests}}],
    }
    if workload.node_selector:
        spec["nodeSelector"] = workload.node_selector
    if workload.tolerations:
        spec["tolerations"] = workload.tolerations
    yield {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata,
        "spec": {
            "replicas": workload.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    if workload.min_available is not None:
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": {"minAvailable": workload.min_available, "selector": {"matchLabels": labels}},
        }


def _named(objects: Iterable[Object], path: Path) -> Iterable[tuple[str, Object]]:
    """Check that each object has a kind and a name, as the reader of files does."""
    for obj in objects:
        yield from files.parse(msgspec.json.encode(obj), str(path))


def _read(names: Iterable[str], path: Path) -> list[tuple[str, Object]]:
    return files.read(path.parent / name for name in names)


def leaves_of(fleet: Fleet, now: datetime) -> Mapping[str, ClusterState]:
    return {name: build(leaf, now) for name, leaf in fleet.leaves.items()}
