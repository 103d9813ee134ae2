"""A simulated cluster whose pools are removed: MachineDeployments, Machines, nodes and pods.

    world = World.of("gpu", nodes=2, pods=[pod("web", "gpu-0")])    # gpu was just removed from the spec
    world = world.passed()                                          # one pass: planned and applied
    world = world.later(minutes=5).passed()

A `World` is immutable. `plan` makes the plan, `done` applies its actions as the server does, and `settled` simulates
Cluster API and the kubelets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from nodeyard.apply.outcome import Outcome as Applied
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.removals import cancel_removal, remove_pool
from nodeyard.capabilities.pools.reasons import WARNINGS
from nodeyard.capabilities.pools.report.status import Account
from nodeyard.capabilities.pools.snapshot import Machine, Management, PoolsSnapshot, Workload
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Node, Pod
from nodeyard.kube.patch import merge_patch
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.message import Message
from nodeyard.plan.model import Action, Blocked, Verb, Write

from .pools import NOW, cluster, machine

CLUSTER = "prod"
OWN = Workload(uid="own", is_own=True)
TEMPLATE: Object = {
    "metadata": {"labels": {names.POOL: "gpu"}},
    "spec": {"deletion": {"nodeDrainTimeoutSeconds": 300, "nodeVolumeDetachTimeoutSeconds": 300}},
}


def deployment(pool: str, *, metadata: Object | None = None, template: Object | None = None, **given: Any) -> Object:
    """Build the MachineDeployment of a pool."""
    name = names.deployment(CLUSTER, pool)
    found = {
        "name": name,
        "namespace": names.namespace(CLUSTER),
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "generation": 1,
        "labels": {names.CLUSTER: CLUSTER, names.POOL: pool},
        **(metadata or {}),
    }
    spec = {"clusterName": CLUSTER, "replicas": 2, "template": template or TEMPLATE}
    return {
        "apiVersion": names.CAPI_API_VERSION,
        "kind": "MachineDeployment",
        "metadata": found,
        "spec": {**spec, **given.get("spec", {})},
        "status": given.get("status", {}),
    }


def member(pool: str, number: int, **given: Any) -> Machine:
    """Build a Machine of a pool; by default it has a node of the same name."""
    name = f"{pool}-{number}"
    spec = {"clusterName": CLUSTER, **given.pop("spec", {})}
    return machine(name, names.deployment(CLUSTER, pool), **{"node": name, "spec": spec, **given})


def node(
    name: str, *, cordoned: bool = False, ready: str = "True", annotations: Mapping[str, str] | None = None
) -> Node:
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "resourceVersion": "1",
                "annotations": dict(annotations or {}),
            },
            "spec": {"unschedulable": cordoned},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        },
        Node,
    )


def pod(name: str, on: str, *, owner: str = "ReplicaSet", phase: str = "Running", **metadata: Any) -> Pod:
    """Build a pod of the namespace `default`; metadata as on the wire."""
    reference = {"kind": owner, "name": "owner", "uid": "uid-owner", "controller": True}
    found = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": [reference], **metadata}
    return msgspec.convert({"metadata": found, "spec": {"nodeName": on}, "status": {"phase": phase}}, Pod)


def cluster_object(name: str = CLUSTER, *, metadata: Object | None = None, is_initialized: bool = True) -> Object:
    """Build the Cluster of Cluster API."""
    return {
        "apiVersion": names.CAPI_API_VERSION,
        "kind": "Cluster",
        "metadata": {
            "name": name,
            "namespace": names.namespace(name),
            "uid": "uid-cluster",
            "resourceVersion": "1",
            "labels": {names.CLUSTER: name},
            **(metadata or {}),
        },
        "spec": {},
        "status": {"initialization": {"controlPlaneInitialized": is_initialized}},
    }


@dataclass(frozen=True)
class Outcome:
    """The plan of a pass, and the state of each pool's removal."""

    builder: PlanBuilder
    snapshot: PoolsSnapshot

    @property
    def actions(self) -> list[Action]:
        return self.builder.actions

    def reasons(self) -> list[str]:
        return [action.reason for action in self.actions]

    def write(self, action: Action) -> Write:
        return self.builder.writes[action.id]

    def blocked(self, reason: str) -> Any:
        """Return the message of the refusal with this reason."""
        [found] = [each.facts for each in self.builder.blocked if each.reason == reason]
        return found

    def state(self, pool: str = "gpu") -> Message:
        """Return what the removal of a pool waits for, or else what is done with its MachineDeployment."""
        about: list[Action | Blocked] = [*self.builder.blocked, *self.actions]
        name = names.deployment(CLUSTER, pool)
        found: list[Message] = [
            each.facts for each in about if each.object.name == name and each.reason not in WARNINGS
        ]
        return found[0]

    def phase(self, pool: str = "gpu") -> str:
        """Return the phase of the pool in the status."""
        plan = self.builder.planned("pools", CLUSTER).plan
        return Account(self.snapshot, plan, Applied()).pool_statuses[pool].phase


@dataclass(frozen=True)
class World:
    deployments: Mapping[str, Object]
    """By pool."""
    machines: Sequence[Machine] = ()
    nodes: Mapping[str, Node] | None = None
    pods: Sequence[Pod] | None = ()
    daemon_sets: frozenset[tuple[str, str]] = frozenset()
    wanted: frozenset[str] = frozenset()
    policy: str = "Drain"
    timeout: int = 300
    workload: Workload = OWN
    now: datetime = NOW

    @classmethod
    def of(cls, pool: str = "gpu", nodes: int = 2, pods: Iterable[Pod] = (), **given: Any) -> World:
        """Return a world with one pool that was just removed from the spec, and its nodes."""
        machines = [member(pool, number) for number in range(nodes)]
        made = cls(
            deployments={pool: deployment(pool)},
            machines=machines,
            nodes={each.node: node(each.node) for each in machines},
            pods=tuple(pods),
        )
        return replace(made, **given)

    def but(self, **given: Any) -> World:
        return replace(self, **given)

    def later(self, **by: float) -> World:
        return replace(self, now=self.now + timedelta(**by))

    @property
    def snapshot(self) -> PoolsSnapshot:
        pods: dict[str, list[Pod]] = {}
        for each in self.pods or ():
            pods.setdefault(each.spec.node_name, []).append(each)
        return PoolsSnapshot(
            cluster=cluster(CLUSTER, poolDeletionPolicy=self.policy, poolDrainTimeout=self.timeout),
            management=Management(
                cluster=cluster_object(),
                deployments={each["metadata"]["name"]: each for each in self.deployments.values()},
                machines=self.machines,
            ),
            workload=replace(
                self.workload,
                nodes=self.nodes or {},
                pods=None if self.pods is None else pods,
                daemon_sets=self.daemon_sets,
            ),
        )

    def plan(self) -> Outcome:
        builder, snapshot = PlanBuilder(self.now), self.snapshot
        for pool, each in sorted(self.deployments.items()):
            if pool in self.wanted:
                cancel_removal(builder, snapshot, each, pool)
            else:
                remove_pool(builder, snapshot, each, pool)
        return Outcome(builder, snapshot)

    # effects

    def passed(self, refused: Collection[str] = ()) -> World:
        """Return the world after one pass; PodDisruptionBudgets refuse the eviction of the pods in `refused`."""
        return self.done(self.plan(), refused).settled()

    def done(self, outcome: Outcome, refused: Collection[str] = (), failing: Collection[str] = ()) -> World:
        """Return the world after the actions; `failing` ones do not reach the server, evictions of `refused` fail."""
        world = self
        for action in outcome.actions:
            if action.id not in failing:
                world = world._after(action, outcome.write(action), refused)
        return world

    def settled(self) -> World:
        """Simulate Cluster API, which syncs templates to Machines and deletes Machines, and the end of evicted pods."""
        gone = {each["metadata"]["name"] for each in self.deployments.values() if is_deleting(each)}
        machines = [self._synced(each) for each in self.machines if each.deployment not in gone]
        lost = {each.node for each in self.machines if each.deployment in gone}
        nodes = {name: each for name, each in (self.nodes or {}).items() if name not in lost}
        stays = [each for each in self.pods or () if not _has_ended(each) and each.spec.node_name not in lost]
        return replace(
            self,
            deployments={pool: each for pool, each in self.deployments.items() if not is_deleting(each)},
            machines=machines,
            nodes=nodes,
            pods=None if self.pods is None else tuple(stays),
        )

    def converged(self, refused: Collection[str] = (), passes: int = 20) -> World:
        """Run passes until no action is left and no wake-up is due."""
        world = self
        for _ in range(passes):
            outcome = world.plan()
            wake = outcome.builder.wake_at
            if not outcome.actions and wake is None:
                return world
            world = world.done(outcome, refused).settled()
            world = replace(world, now=max(world.now, wake or world.now))
        raise AssertionError("the removal does not come to rest")

    def _after(self, action: Action, write: Write, refused: Collection[str]) -> World:
        match action.verb, action.object.kind:
            case Verb.EVICT, _:
                assert self.pods is not None
                return replace(self, pods=tuple(_evicted(each, action, refused) for each in self.pods))
            case Verb.PATCH, "Node":
                assert self.nodes is not None
                before = self.nodes[action.object.name]
                return replace(self, nodes={**self.nodes, action.object.name: _patched_node(before, write)})
            case verb, "MachineDeployment":
                pool, before = self._deployment(action)
                assert write.resource_version == before["metadata"]["resourceVersion"], "it was looked at"
                after = _deleted(before, self.now) if verb is Verb.DELETE else merge_patch(before, write.body)
                return replace(self, deployments={**self.deployments, pool: _touched(after)})
        raise AssertionError(f"{action.verb} {action.object} is none of a removal's")

    def _deployment(self, action: Action) -> tuple[str, Object]:
        [found] = [
            (pool, each) for pool, each in self.deployments.items() if each["metadata"]["uid"] == action.object.uid
        ]
        return found

    def _synced(self, machine: Machine) -> Machine:
        """Return the Machine with the fields that Cluster API syncs in place from its MachineDeployment."""
        found = [each for each in self.deployments.values() if each["metadata"]["name"] == machine.deployment]
        if not found:
            return machine
        template = found[0]["spec"]["template"]
        wire = msgspec.to_builtins(machine)
        annotations = template.get("metadata", {}).get("annotations", {})
        deletion = template.get("spec", {}).get("deletion", {})
        return msgspec.convert(
            {
                **wire,
                "metadata": {**wire["metadata"], "annotations": dict(annotations)},
                "spec": {**wire["spec"], "deletion": dict(deletion)},
            },
            Machine,
        )


def is_deleting(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _touched(obj: Object) -> Object:
    version = str(int(obj["metadata"]["resourceVersion"]) + 1)
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}


def _deleted(obj: Object, now: datetime) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": now.isoformat()}}


def _patched_node(before: Node, write: Write) -> Node:
    assert write.resource_version == before.metadata.resource_version, "it was looked at"
    wire = _touched(merge_patch(msgspec.to_builtins(before), write.body))
    spec = {**wire["spec"], "unschedulable": bool(wire["spec"].get("unschedulable"))}
    return msgspec.convert({**wire, "spec": spec}, Node)


def _evicted(each: Pod, action: Action, refused: Collection[str]) -> Pod:
    if each.metadata.uid != action.object.uid or each.metadata.name in refused:
        return each
    metadata = msgspec.structs.replace(each.metadata, deletion_timestamp=NOW)
    return msgspec.structs.replace(each, metadata=metadata)


def _has_ended(each: Pod) -> bool:
    """Return True for a deleted pod without finalizers."""
    return each.metadata.deletion_timestamp is not None and not each.metadata.finalizers
