"""One pool: its templates, its MachineDeployment and its number, or what keeps it from having them.

A pool whose class is missing or whose keys would keep nodes from joining is blocked alone: nothing of it is made or
changed, but one that exists is still scaled.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodeyard.capabilities.pools import generation, names
from nodeyard.capabilities.pools.planning import replicas, rolling, templates
from nodeyard.capabilities.pools.planning.adoption import Belonging, is_adopted
from nodeyard.capabilities.pools.planning.applying import apply, changes, ref_to
from nodeyard.capabilities.pools.planning.observed import bootstrap_of, infrastructure_of, is_deleting
from nodeyard.capabilities.pools.planning.removals import cancel_removal
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import LatticeNodeClass, WorkerPool
from nodeyard.capabilities.pools.validity import faults
from nodeyard.kube.json import Object
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import ObjectRef


@dataclass(frozen=True)
class Refusal:
    """Why nothing of a pool is made or changed."""

    reason: Reason
    facts: Object


@dataclass(frozen=True)
class Pool:
    """A pool that is wanted, and what there is of it."""

    id: str
    spec: WorkerPool
    belonging: Belonging
    node_class: LatticeNodeClass | None
    machine: generation.Template | None
    """What its machines are made from; None where that cannot be said."""
    refusal: Refusal | None

    @property
    def deployment(self) -> Object | None:
        return self.belonging.deployment


def resolve(snapshot: PoolsSnapshot, id: str, spec: WorkerPool, belonging: Belonging) -> Pool:
    node_class = snapshot.classes.get(spec.node_class) if spec.node_class else None
    facts: Object = {"cluster": snapshot.cluster.name, "pool": id}
    refusal, machine = _refusal(snapshot, id, spec, node_class, facts), None
    try:
        if refusal is None:
            machine = generation.worker_template(snapshot.cluster, id, spec, node_class, snapshot.served)
    except generation.Unfit as unfit:
        reason = Reason.NODE_CLASS_UNFIT if spec.node_class else Reason.INVALID
        refusal = Refusal(reason, {**facts, **_class_of(spec), "error": unfit.message})
    except generation.Unserved:
        pass  # of the whole cluster, and said there
    return Pool(id, spec, belonging, node_class, machine, refusal)


def _refusal(
    snapshot: PoolsSnapshot, id: str, spec: WorkerPool, node_class: LatticeNodeClass | None, facts: Object
) -> Refusal | None:
    """What the pool itself says, or its class, before anything is made of it."""
    if found := faults(id, spec):
        texts = [f"{fault.field} {fault.value}: {fault.message}" for fault in found]
        return Refusal(Reason.KEY_REFUSED, {**facts, "faults": texts})
    if spec.node_class and node_class is None:
        facts = {**facts, **_class_of(spec)}
        error = snapshot.bad_classes.get(spec.node_class)
        reason = Reason.NODE_CLASS_NOT_FOUND if error is None else Reason.NODE_CLASS_UNFIT
        return Refusal(reason, facts if error is None else {**facts, "error": error})
    return None


def _class_of(spec: WorkerPool) -> Object:
    return {"class": spec.node_class} if spec.node_class else {}


def pool_ref(snapshot: PoolsSnapshot, pool: Pool) -> ObjectRef:
    """What is spoken of when a pool is: its MachineDeployment, also before there is one."""
    if pool.deployment is not None:
        return ref_to(pool.deployment)
    return ObjectRef(
        api_version=names.CAPI_API_VERSION,
        kind="MachineDeployment",
        namespace=names.namespace(snapshot.cluster.name),
        name=pool.belonging.name,
    )


def nodes_of(snapshot: PoolsSnapshot, deployment: str) -> tuple[str, ...]:
    """The nodes of a pool, and its machines that have not become nodes yet, by name."""
    return tuple(machine.node or machine.metadata.name for machine in snapshot.management.machines_of(deployment))


def keep(
    draft: Draft, snapshot: PoolsSnapshot, pool: Pool, version: str, ground: tuple[str, ...], may_scale: bool
) -> tuple[tuple[str, str], ...]:
    """Bring a pool to what the spec says; the templates it uses, by kind and name."""
    deployment, ref = pool.deployment, pool_ref(snapshot, pool)
    facts: Object = {"cluster": snapshot.cluster.name, "pool": pool.id}
    if pool.belonging.other:
        draft.block(ref, Reason.DUPLICATE, {**facts, "kept": pool.belonging.name, "other": pool.belonging.other})
    if deployment is not None and is_deleting(deployment):
        draft.block(ref, Reason.DEPLOYMENT_DELETING, facts)
        return ()
    undone = _stay(draft, snapshot, pool)
    if pool.refusal is not None:
        draft.block(ref, pool.refusal.reason, pool.refusal.facts)
        _scale(draft, snapshot, pool, may_scale)
        return ()
    return _bring(draft, snapshot, pool, version, (*ground, *undone), may_scale)


def _stay(draft: Draft, snapshot: PoolsSnapshot, pool: Pool) -> tuple[str, ...]:
    """Undo a removal that had begun; what has to be done before the MachineDeployment is applied. Nodes are not."""
    if pool.deployment is None:
        return ()
    undone = cancel_removal(draft, snapshot, pool.deployment, pool.id)
    return tuple(id for id in undone if id.startswith("MachineDeployment/"))


def _scale(draft: Draft, snapshot: PoolsSnapshot, pool: Pool, may_scale: bool) -> str:
    if pool.deployment is None:
        return ""
    victims = nodes_of(snapshot, pool.belonging.name)
    return replicas.scale(draft, snapshot.cluster, pool.id, pool.spec, pool.deployment, may_scale, victims)


def _bring(
    draft: Draft, snapshot: PoolsSnapshot, pool: Pool, version: str, ground: tuple[str, ...], may_scale: bool
) -> tuple[tuple[str, str], ...]:
    lc, management, live = snapshot.cluster, snapshot.management, pool.deployment
    assert pool.machine is not None  # it is not refused, and the ground has been laid of kinds that are served
    bootstrap = generation.bootstrap_template(lc, pool.id, pool.spec)
    current = (("", ""), ("", "")) if live is None else (infrastructure_of(live), bootstrap_of(live))
    machine = templates.choose(draft, lc, management, pool.machine, current[0], ground)
    config = templates.choose(draft, lc, management, bootstrap, current[1], ground)
    body = generation.machine_deployment(
        lc,
        pool.id,
        pool.spec,
        name=pool.belonging.name,
        bootstrap=config.name,
        infrastructure_kind=machine.kind,
        infrastructure=machine.name,
        version=version,
        replicas=0 if live is None else None,
        selector=None if live is None else (live.get("spec") or {}).get("selector"),
        node_class=pool.node_class,
    )
    after = [each for each in (*ground, machine.action, config.action) if each]
    if live is None:
        _make(draft, snapshot, pool, body, after, may_scale)
    else:
        scaled = _scale(draft, snapshot, pool, may_scale)
        taken_over = [scaled] if scaled and replicas.is_held_by_us_alone(live) else []
        _change(draft, snapshot, pool, live, body, [*after, *taken_over])
    return (machine.kind, machine.name), (config.kind, config.name)


def _make(draft: Draft, snapshot: PoolsSnapshot, pool: Pool, body: Object, after: list[str], may_scale: bool) -> None:
    """Never forced: were there a pool after all that we do not see, its number would stand against our 0."""
    facts = {"cluster": snapshot.cluster.name, "pool": pool.id, "replicas": pool.spec.replicas}
    made = apply(draft, None, body, Reason.POOL_CREATED, facts, after=after, force=False)
    replicas.first(draft, snapshot.cluster, pool.id, pool.spec, ref_to(body), made, may_scale)


def _change(draft: Draft, snapshot: PoolsSnapshot, pool: Pool, live: Object, body: Object, after: list[str]) -> None:
    lc = snapshot.cluster
    changed = changes(live, body, keeping=(replicas.FIELD,))
    disruption, disrupts, why = rolling.replacement(changed, nodes_of(snapshot, pool.belonging.name))
    facts: Object = {"cluster": lc.name, "pool": pool.id}
    reason = Reason.POOL_UPDATED if is_adopted(lc.name, live) else Reason.POOL_ADOPTED
    if why:
        reason, facts = Reason.POOL_ROLLED, {**facts, "nodes": len(disrupts), "why": list(why)}
    apply(
        draft,
        live,
        body,
        reason,
        facts,
        disruption=disruption,
        disrupts=disrupts,
        after=after,
        changed=changed,
    )
