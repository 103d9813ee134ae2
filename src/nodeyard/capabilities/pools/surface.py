"""Pools on the dashboard: the pool of a node, services without a pool, rollouts and drains with blockers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from nodeyard.capabilities.pools import names, watched
from nodeyard.capabilities.pools.collect import collect
from nodeyard.capabilities.pools.messages.removals import PodAwaited
from nodeyard.capabilities.pools.planning.machine_state import pool_of, removed, replicas
from nodeyard.capabilities.pools.planning.removals import LISTED, WaitingPod, waiting_pods
from nodeyard.capabilities.pools.planning.removed_pool import RemovedPool
from nodeyard.capabilities.pools.planning.services import service_ref
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.report.services import PLACED, UNPLACED
from nodeyard.capabilities.pools.report.status import DRAINED, READY, VERSION_CURRENT
from nodeyard.capabilities.pools.snapshot import Machine
from nodeyard.capabilities.pools.types import (
    DeletionPolicy,
    LatticeCluster,
    LatticeService,
    Pivot,
    PoolPhase,
    WorkerPoolStatus,
    resolved_pools,
)
from nodeyard.kube import meta, timestamps
from nodeyard.kube.conditions import FALSE, find
from nodeyard.kube.json import Object
from nodeyard.kube.names import POOL_DRAINING
from nodeyard.kube.objects import Condition, Node
from nodeyard.plan.layout import counted
from nodeyard.plan.model import Decision, ObjectRef
from nodeyard.runtime.capability import View
from nodeyard.runtime.surface import (
    Attention,
    Blocker,
    Remedy,
    Rollout,
    Severity,
    Surface,
    Tile,
    TileState,
    patch_command,
    rungs,
)

_RUNNING: Final = "Running"
_SETTLED: Final = frozenset({PoolPhase.READY.value, ""})
_STOPPED: Final = frozenset({Reason.DRAIN_TIMEOUT, Reason.WORKLOAD_UNREACHABLE, Reason.VERSION_STOPPED})
_UNPAUSED: Final = {"spec": {"paused": False}, "metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}}
_NEXT: Final[Mapping[str, str]] = {
    PoolPhase.ROLLING: "Cluster API replaces the next Machine once the new one is available.",
    PoolPhase.SCALING: "Cluster API brings the missing Machines up.",
    PoolPhase.PENDING: "The MachineDeployment is created.",
    PoolPhase.PAUSED: "Nothing until it is unpaused.",
}


# tiles


def tile(view: View, name: str) -> Tile | None:
    node: Node | None = view.get("Node", name)
    if node is None:
        return None
    machine = _machine_of(view, name)
    pool = node.metadata.labels.get(names.POOL, "") if machine is None else _pool_of(view, machine)
    hue = pool
    if machine is not None and names.CONTROL_PLANE_LABEL in machine.metadata.labels:
        hue = names.control_plane(machine.spec.cluster_name)
    if not hue:
        return None
    if POOL_DRAINING in node.metadata.annotations:
        since = timestamps.parse_rfc3339_or_none(node.metadata.annotations[POOL_DRAINING])
        return Tile(state=TileState.DRAINING, since=since, pool=pool, hue=hue)
    if machine is not None and machine.metadata.deletion_timestamp is not None:
        return Tile(state=TileState.DRAINING, since=machine.metadata.deletion_timestamp, pool=pool, hue=hue)
    is_pending = machine is not None and machine.status.phase not in (_RUNNING, "")
    state = TileState.PENDING if is_pending else TileState.CLAIMED
    return Tile(state=state, since=node.metadata.creation_timestamp, pool=pool, hue=hue)


def _machine_of(view: View, node: str) -> Machine | None:
    """Return the Machine of a node. Machines of a cluster elsewhere may have nodes of the same name."""
    machines: Sequence[Machine] = view.indexed("Machine", names.BY_NODE, node)
    return next((each for each in machines if _is_local(view, each.spec.cluster_name)), None)


def _is_local(view: View, cluster: str) -> bool:
    """Return True if the nodes of a cluster are nodes of this one; before its uid is known, as its spec says."""
    lc: LatticeCluster | None = view.get(names.CLUSTER_KIND, cluster)
    if lc is None:
        return False
    uid = view.cluster(cluster).uid
    return uid == view.uid if uid and view.uid else lc.spec.pivot != Pivot.NEVER


def _pool_of(view: View, machine: Machine) -> str:
    """Return the pool as CLUSTER/POOL; the control plane is none."""
    cluster = machine.spec.cluster_name
    deployment: Object | None = view.get("MachineDeployment", machine.deployment, names.namespace(cluster))
    pool = "" if deployment is None else pool_of(cluster, deployment)
    return f"{cluster}/{pool}" if pool else ""


def _nodes_of_machine(_view: View, old: Machine | None, new: Machine | None) -> Iterable[str]:
    return {each.node for each in (old, new) if each is not None and each.node}


# attention


def attention(view: View, _now: datetime) -> Iterator[Attention]:
    services: Sequence[LatticeService] = view.all(names.SERVICE_KIND)
    for service in services:
        if service.status.phase == UNPLACED:
            yield _unplaced(service, find(service.status.conditions, PLACED))
    clusters: Sequence[LatticeCluster] = view.all(names.CLUSTER_KIND)
    for cluster in clusters:
        for type in (DRAINED, VERSION_CURRENT):
            condition = find(cluster.status.conditions, type)
            if condition is not None and condition.status == FALSE and condition.reason in _STOPPED:
                yield _stopped(cluster, condition)
        yield from _shortages(cluster)


def _unplaced(service: LatticeService, placed: Condition | None) -> Attention:
    return Attention(
        kind="Unplaced",
        severity=Severity.WARNING,
        object=service_ref(service),
        reason=Reason.UNPLACED.value if placed is None else placed.reason,
        message=service.status.message,
        since=None if placed is None else placed.last_transition_time,
    )


def _stopped(cluster: LatticeCluster, condition: Condition) -> Attention:
    return Attention(
        kind="StoppedRollout",
        severity=Severity.WARNING,
        object=cluster_ref(cluster),
        reason=condition.reason,
        message=condition.message,
        since=condition.last_transition_time,
        link={"view": "rollouts", "kind": "Drain" if condition.type == DRAINED else "Pool"},
    )


def _shortages(cluster: LatticeCluster) -> Iterator[Attention]:
    """Yield the pools that lack nodes and are blocked."""
    ready = find(cluster.status.conditions, READY)
    for id, pool in cluster.status.worker_pools.items():
        if pool.phase == PoolPhase.BLOCKED and pool.available < pool.desired:
            yield Attention(
                kind="Shortage",
                severity=Severity.WARNING if pool.available else Severity.CRITICAL,
                object=_pool_ref(cluster, id, pool),
                reason=PoolPhase.BLOCKED.value,
                message=pool.message,
                since=None if ready is None or ready.status != FALSE else ready.last_transition_time,
                link={"view": "yard", "group": "pool", "pool": f"{cluster.name}/{id}"},
            )


def cluster_ref(cluster: LatticeCluster) -> ObjectRef:
    return ObjectRef(
        api_version=names.API_VERSION, kind=names.CLUSTER_KIND, name=cluster.name, uid=cluster.metadata.uid
    )


def _pool_ref(cluster: LatticeCluster, pool: str, status: WorkerPoolStatus) -> ObjectRef:
    return ObjectRef(
        api_version=names.CAPI_API_VERSION,
        kind="MachineDeployment",
        namespace=names.namespace(cluster.name),
        name=status.machine_deployment or names.deployment(cluster.name, pool),
    )


# rollouts and drains


def rollouts(view: View, now: datetime) -> Iterator[Rollout]:
    clusters: Sequence[LatticeCluster] = view.all(names.CLUSTER_KIND)
    for cluster in clusters:
        pools = resolved_pools(cluster.spec.nodes)
        known = cluster.status.worker_pools
        yield from (_rollout(cluster, id, pool) for id, pool in known.items() if id in pools and _moves(pool))
        if view.indexed("MachineDeployment", names.DRAINING, cluster.name) or known.keys() - pools.keys():
            snapshot = collect(view, cluster.name, now)
            if snapshot is not None:
                found = removed(cluster.name, snapshot.management, pools)
                yield from (_drain(RemovedPool(snapshot, each, id), now) for id, each in found)


def _moves(pool: WorkerPoolStatus) -> bool:
    return pool.phase not in _SETTLED


def _rollout(cluster: LatticeCluster, id: str, pool: WorkerPoolStatus) -> Rollout:
    ref, ready = _pool_ref(cluster, id, pool), find(cluster.status.conditions, READY)
    since = ready.last_transition_time if ready is not None and ready.status == FALSE else None
    is_blocked = pool.phase == PoolPhase.BLOCKED
    blocker = Blocker(
        object=ref,
        reason=pool.phase,
        message=pool.message,
        since=since,
        ways_out=(f"nodeyard why pool/{cluster.name}/{id}",),
    )
    return Rollout(
        capability=names.CAPABILITY,
        kind="Pool",
        object=ref,
        done=pool.up_to_date if pool.phase == PoolPhase.ROLLING else min(pool.available, pool.desired),
        total=max(pool.desired, pool.replicas) if pool.phase == PoolPhase.ROLLING else pool.desired,
        state=pool.phase,
        next=_NEXT.get(pool.phase, ""),
        message=pool.message,
        since=since,
        blockers=(blocker,) if is_blocked else (),
    )


def _drain(pool: RemovedPool, now: datetime) -> Rollout:
    deployment, machines = pool.deployment, len(pool.machines)
    status = pool.snapshot.cluster.status.worker_pools.get(pool.pool, WorkerPoolStatus())
    total = max(replicas(deployment), machines)
    waiting: tuple[WaitingPod, ...] = ()
    if meta.is_deleting(deployment):
        state, done = PoolPhase.DELETING.value, total - machines
        step = f"Cluster API deletes the remaining {counted(machines, 'Machine')}."
    else:
        state, waiting = status.phase or PoolPhase.DRAINING.value, tuple(waiting_pods(pool, now))
        is_drained = pool.policy is DeletionPolicy.DRAIN and pool.started is not None and pool.is_reachable
        busy = {each.node.metadata.name for each in waiting}
        done = len(pool.nodes) - len(busy) if is_drained else 0
        step = f"The pool is deleted with its {counted(machines, 'Machine')}."
        if waiting:
            step = f"{counted(len(waiting), 'pod')} on {counted(len(busy), 'node')} leave; then the pool is deleted."
    return Rollout(
        capability=names.CAPABILITY,
        kind="Drain",
        object=pool.ref,
        done=done,
        total=total,
        state=state,
        next=step,
        message=status.message,
        since=pool.started,
        blockers=tuple(_blocker(pool, each, status) for each in waiting[:LISTED]),
    )


def _blocker(pool: RemovedPool, waiting: WaitingPod, status: WorkerPoolStatus) -> Blocker:
    """Describe a pod with its owner and the last answer to its eviction, which names the PodDisruptionBudget."""
    metadata, owner = waiting.pod.metadata, waiting.pod.metadata.controller
    error = next((each.message for each in status.blocking_pods if each.pod == waiting.name), "")
    held_by = "no controller recreates it" if owner is None else f"it belongs to {owner.kind} {owner.name}"
    cluster = pool.snapshot.cluster.name
    ways = [f"kubectl get poddisruptionbudgets --namespace {metadata.namespace}"] if error else []
    if not pool.workload.cluster:
        ways.append(f"kubectl delete pod {metadata.name} --namespace {metadata.namespace}")
    return Blocker(
        object=pool.pod_ref(waiting.pod),
        reason=Reason.POD_AWAITED.value,
        message=f"{PodAwaited(node=waiting.node.metadata.name, error=error).text()}; {held_by}",
        since=metadata.deletion_timestamp or pool.started,
        ways_out=(*ways, f"Add pool {pool.pool} to the spec of {cluster} again.", "Change spec.poolDeletionPolicy."),
    )


# why

LADDERS: Final = {
    names.CLUSTER_KIND: rungs(
        (Reason.CLUSTER_PAUSED, "Its Cluster is paused"),
        (Reason.INVALID, "Its spec is invalid"),
        (Reason.NAMESPACE_DELETING, "Its namespace is being deleted"),
        (Reason.CLUSTER_DELETING, "Its Cluster is being deleted"),
        (Reason.CLUSTER_GONE, "Its Cluster has disappeared"),
        (Reason.PROVIDER_NOT_SERVED, "The provider is not installed"),
        (Reason.CONTROL_PLANE_PENDING, "Its control plane is not initialized, and workers wait for it"),
        (Reason.NOT_PIVOTED, "Its objects have not been moved into it, and workers wait for that"),
        (Reason.PROVISIONING, "It is being provisioned"),
        (Reason.CONTROL_PLANE_NOT_COMPLETE, "Its control plane is not complete"),
        (Reason.ROLLING, "A pool is being rolled"),
        (Reason.SCALING, "A pool is being scaled"),
        (Reason.RECONCILED, "All of it is as specified"),
    ),
    names.SERVICE_KIND: rungs(
        (Reason.INVALID, "It cannot be read"),
        (Reason.UNPLACED, "No pool matches labels and taints"),
        (Reason.PLACED, "A pool matches labels and taints"),
    ),
}


def remedies(view: View, decision: Decision) -> list[Remedy]:
    """Return what would change a decision about a pool or cluster, with the command if its values are known."""
    return [
        Remedy(message=each.text(), command=_command(view, decision, each.reason)) for each in decision.would_change
    ]


def _command(view: View, decision: Decision, reason: str) -> str:
    ref = decision.object
    cluster = ref.name if ref.kind == names.CLUSTER_KIND else watched.cluster_of(ref.namespace)
    match reason:
        case Reason.UNPAUSE:
            return patch_command("clusters.cluster.x-k8s.io", cluster, _UNPAUSED, names.namespace(cluster))
        case Reason.FORGET_CLUSTER:
            return f"kubectl annotate {names.CLUSTER_PLURAL} {cluster} {names.CLUSTER_UID}-"
        case Reason.CHANGE_REPLICAS:
            lc: LatticeCluster | None = view.get(names.CLUSTER_KIND, cluster)
            deployment: Object | None = view.get("MachineDeployment", ref.name, ref.namespace)
            pool = "" if lc is None or deployment is None else pool_of(cluster, deployment)
            if lc is None or pool not in (lc.spec.nodes.worker_pools or {}):
                return ""
            wanted = {pool: {"replicas": replicas(deployment or {}) + 1}}
            return patch_command(names.CLUSTER_PLURAL, cluster, {"spec": {"nodes": {"workerPools": wanted}}})
    return ""


SURFACE: Final = Surface(
    tile=tile,
    tile_nodes={"Machine": _nodes_of_machine},
    attention=attention,
    rollouts=rollouts,
    ladders=LADDERS,
    remedies=remedies,
)
