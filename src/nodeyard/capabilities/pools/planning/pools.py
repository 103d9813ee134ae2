"""Reconciles one pool: its templates, its MachineDeployment and its replicas.

A pool whose class is missing or whose keys would keep nodes from joining is blocked alone: nothing of it is created or
changed, but an existing pool is still scaled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.blocks import (
    AutoscalingIgnored,
    AutoscalingIncomplete,
    Invalid,
    KeyRefused,
    NodeClassNotFound,
    NodeClassUnfit,
    TwoMachineDeployments,
)
from nodeyard.capabilities.pools.messages.changes import PoolAdopted, PoolCreated, PoolRolled, PoolUpdated
from nodeyard.capabilities.pools.messages.removals import DeploymentDeleting
from nodeyard.capabilities.pools.planning import generation, replicas, rollout, templates
from nodeyard.capabilities.pools.planning.machine_state import (
    DeploymentLookup,
    bootstrap_of,
    infrastructure_of,
    is_adopted,
)
from nodeyard.capabilities.pools.planning.removals import cancel_removal
from nodeyard.capabilities.pools.planning.server_side_apply import (
    ApprovalGroup,
    apply,
    changes,
    class_group_name,
    ref_to,
)
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import LatticeCluster, LatticeNodeClass, WorkerPool
from nodeyard.capabilities.pools.validation.node_keys import faults
from nodeyard.kube import meta
from nodeyard.kube.json import Object
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.message import Message
from nodeyard.plan.model import ObjectRef


@dataclass(frozen=True)
class Pool:
    """A pool of the spec, with its live MachineDeployment."""

    id: str
    spec: WorkerPool
    lookup: DeploymentLookup
    node_class: LatticeNodeClass | None
    machine: generation.Template | None
    """Its machine template; None if it cannot be generated."""
    refusal: Message | None
    """Why the pool is blocked; None if it is not."""

    @property
    def deployment(self) -> Object | None:
        return self.lookup.deployment


def resolve(snapshot: PoolsSnapshot, id: str, spec: WorkerPool, lookup: DeploymentLookup) -> Pool:
    node_class = snapshot.classes.get(spec.node_class) if spec.node_class else None
    refusal, machine = _refusal(snapshot, id, spec, node_class), None
    try:
        if refusal is None:
            machine = generation.worker_template(snapshot.cluster, id, spec, node_class, snapshot.served)
    except generation.InvalidSpec as unfit:
        if spec.node_class:
            refusal = NodeClassUnfit(pool=id, node_class=spec.node_class, error=unfit.message)
        else:
            refusal = Invalid(error=unfit.message)
    except generation.NotServed:
        pass  # reported once for the whole cluster
    return Pool(id, spec, lookup, node_class, machine, refusal)


def _refusal(snapshot: PoolsSnapshot, id: str, spec: WorkerPool, node_class: LatticeNodeClass | None) -> Message | None:
    """Return the block caused by the pool's keys or its class."""
    if found := faults(id, spec):
        return KeyRefused(pool=id, faults=tuple(f"{each.field} {each.value}: {each.message}" for each in found))
    if spec.node_class and node_class is None:
        if (error := snapshot.malformed_classes.get(spec.node_class)) is not None:
            return NodeClassUnfit(pool=id, node_class=spec.node_class, error=error)
        return NodeClassNotFound(pool=id, node_class=spec.node_class)
    return None


def autoscaling_warning(lc: LatticeCluster, id: str, spec: WorkerPool) -> Message | None:
    """Return the warning about min and max that have no effect; None if there is none."""
    if spec.min is None and spec.max is None:
        return None
    if not lc.is_autoscaled:
        return AutoscalingIgnored(pool=id, replicas=spec.replicas)
    missing = "min" if spec.min is None else "max" if spec.max is None else ""
    return AutoscalingIncomplete(pool=id, missing=missing, replicas=spec.replicas) if missing else None


def pool_ref(snapshot: PoolsSnapshot, pool: Pool) -> ObjectRef:
    """Return the reference of a pool's MachineDeployment, even if it does not exist yet."""
    if pool.deployment is not None:
        return ref_to(pool.deployment)
    return ObjectRef(
        api_version=names.CAPI_API_VERSION,
        kind="MachineDeployment",
        namespace=names.namespace(snapshot.cluster.name),
        name=pool.lookup.name,
    )


def nodes_of(snapshot: PoolsSnapshot, deployment: str) -> tuple[str, ...]:
    """Return the nodes of a pool, and the names of Machines without a node."""
    return tuple(machine.node or machine.metadata.name for machine in snapshot.management.machines_of(deployment))


def reconcile_pool(
    builder: PlanBuilder,
    snapshot: PoolsSnapshot,
    pool: Pool,
    version: str,
    prerequisites: tuple[str, ...],
    may_scale: bool,
) -> tuple[tuple[str, str], ...]:
    """Reconcile a pool with the spec; return the templates it uses, by kind and name."""
    deployment, ref = pool.deployment, pool_ref(snapshot, pool)
    if pool.lookup.other:
        builder.block(ref, TwoMachineDeployments(pool=pool.id, kept=pool.lookup.name, other=pool.lookup.other))
    if deployment is not None and meta.is_deleting(deployment):
        machines = len(snapshot.management.machines_of(pool.lookup.name))
        builder.block(ref, DeploymentDeleting(pool=pool.id, machines=machines))
        return ()
    cancelled = "" if deployment is None else cancel_removal(builder, snapshot, deployment, pool.id)
    if pool.refusal is not None:
        builder.block(ref, pool.refusal)
        _scale(builder, snapshot, pool, may_scale)
        return ()
    return _apply(builder, snapshot, pool, version, (*prerequisites, cancelled), may_scale)


def _scale(builder: PlanBuilder, snapshot: PoolsSnapshot, pool: Pool, may_scale: bool) -> str:
    if pool.deployment is None:
        return ""
    nodes = nodes_of(snapshot, pool.lookup.name)
    return replicas.scale(builder, snapshot.cluster, pool.id, pool.spec, pool.deployment, may_scale, nodes)


def _apply(
    builder: PlanBuilder,
    snapshot: PoolsSnapshot,
    pool: Pool,
    version: str,
    prerequisites: tuple[str, ...],
    may_scale: bool,
) -> tuple[tuple[str, str], ...]:
    lc, management, live = snapshot.cluster, snapshot.management, pool.deployment
    assert pool.machine is not None  # not blocked, and the provider's kinds are served
    bootstrap = generation.bootstrap_template(lc, pool.id, pool.spec)
    current = (("", ""), ("", "")) if live is None else (infrastructure_of(live), bootstrap_of(live))
    machine = templates.choose(builder, lc, management, pool.machine, current[0], prerequisites)
    config = templates.choose(builder, lc, management, bootstrap, current[1], prerequisites)
    body = generation.machine_deployment(
        lc,
        pool.id,
        pool.spec,
        name=pool.lookup.name,
        bootstrap=config.name,
        infrastructure_kind=machine.kind,
        infrastructure=machine.name,
        version=version,
        replicas=0 if live is None else None,
        selector=None if live is None else (live.get("spec") or {}).get("selector"),
        node_class=pool.node_class,
    )
    after = [each for each in (*prerequisites, machine.action, config.action) if each]
    if live is None:
        _create(builder, snapshot, pool, body, after, may_scale)
    else:
        scaled = _scale(builder, snapshot, pool, may_scale)
        taken_over = [scaled] if scaled and replicas.is_held_by_us_alone(live) else []
        _update(builder, snapshot, pool, live, body, [*after, *taken_over])
    return (machine.kind, machine.name), (config.kind, config.name)


def _create(
    builder: PlanBuilder, snapshot: PoolsSnapshot, pool: Pool, body: Object, after: list[str], may_scale: bool
) -> None:
    """Create the MachineDeployment. The apply is not forced: if it exists but is not in the cache, its replicas
    conflict with 0 and stay."""
    message = PoolCreated(pool=pool.id, cluster=snapshot.cluster.name)
    made = apply(builder, None, body, message, after=after, force=False)
    replicas.set_initial(builder, snapshot.cluster, pool.id, pool.spec, ref_to(body), made, may_scale)


def _update(
    builder: PlanBuilder, snapshot: PoolsSnapshot, pool: Pool, live: Object, body: Object, after: list[str]
) -> None:
    lc = snapshot.cluster
    changed = changes(live, body, keeping=(replicas.FIELD,))
    disruption, disrupts, why = rollout.replacement(changed, nodes_of(snapshot, pool.lookup.name))
    message: Message
    if why:
        message = PoolRolled(pool=pool.id, nodes=len(disrupts), why=why)
    elif is_adopted(lc.name, live):
        message = PoolUpdated(pool=pool.id)
    else:
        message = PoolAdopted(pool=pool.id, cluster=lc.name)
    apply(
        builder,
        live,
        body,
        message,
        disruption=disruption,
        disrupts=disrupts,
        after=after,
        changed=changed,
        group=_group(snapshot, pool, why),
    )


def _group(snapshot: PoolsSnapshot, pool: Pool, why: Sequence[str]) -> ApprovalGroup:
    """Return the approval group of a change of a MachineDeployment.

    A class edit is the group of all pools that it replaces, for this generation of the class.
    """
    edit, node_class = snapshot.class_edits.get(pool.id), pool.node_class
    if rollout.MACHINE not in why or edit is None or node_class is None:
        return rollout.replacement_group(snapshot, pool.lookup.name, why)
    metadata = node_class.metadata
    ref = ObjectRef(api_version=names.API_VERSION, kind=names.CLASS_KIND, name=metadata.name, uid=metadata.uid)
    return ApprovalGroup(class_group_name(metadata), edit.nodes, edit.managed, ref)
