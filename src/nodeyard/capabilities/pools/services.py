"""Reconciles LatticeServices: matches them with the pools of all LatticeClusters.

Only the status of each service is written, and nothing is scheduled. All services share one workqueue key, because a
pool that is added or removed may affect any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

import msgspec

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.collect import BY_NAMESPACE
from nodeyard.capabilities.pools.generation.autoscaling import is_autoscaled
from nodeyard.capabilities.pools.messages import text
from nodeyard.capabilities.pools.planning.deployment_lookup import find_deployment, removed
from nodeyard.capabilities.pools.planning.machine_state import is_control_plane_initialized, replicas
from nodeyard.capabilities.pools.planning.matching import Match, PoolIndex, PoolOffer
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import Management
from nodeyard.capabilities.pools.types import (
    LatticeCluster,
    LatticeService,
    LatticeServiceStatus,
    Pivot,
    PlacedPool,
    RefusedPool,
    WorkerPool,
    resolved_pools,
)
from nodeyard.kube.conditions import FALSE, TRUE, to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.model import Blocked, Candidate, Decision, ObjectRef, Plan, Planned
from nodeyard.runtime.capability import StatusWrite, View

LISTED = 50
PLACED = "Placed"
UNPLACED = "Unplaced"

_NAMED = 5
_REMEDIES: Mapping[Reason, Reason] = {
    Reason.LABEL_MISSING: Reason.ADD_LABEL,
    Reason.LABEL_DIFFERS: Reason.ADD_LABEL,
    Reason.TAINT_NOT_TOLERATED: Reason.ADD_TOLERATION,
    Reason.POOL_EMPTY: Reason.SCALE_UP,
    Reason.POOL_DRAINING: Reason.READD_POOL,
    Reason.CLUSTER_NOT_READY: Reason.WAIT_CONTROL_PLANE,
}


@dataclass(frozen=True)
class ServicesSnapshot:
    services: Sequence[LatticeService] = ()
    """Sorted by namespace and name."""
    offers: Sequence[PoolOffer] = ()
    """Sorted by cluster and pool."""
    malformed: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Services that do not decode, by namespace and name, with the error."""

    @cached_property
    def pool_index(self) -> PoolIndex:
        return PoolIndex(self.offers)

    def match(self, service: LatticeService) -> Match:
        return self.pool_index.match(service.spec.placement)


# snapshot


def collect_services(view: View, _now: datetime) -> ServicesSnapshot:
    clusters: Sequence[LatticeCluster] = view.all(names.CLUSTER_KIND)
    services: Sequence[LatticeService] = view.all(names.SERVICE_KIND)
    malformed = dict(view.malformed(names.SERVICE_KIND))
    return ServicesSnapshot(
        services=[each for each in services if (each.metadata.namespace, each.metadata.name) not in malformed],
        # Without services the pools of all clusters need not be read.
        offers=[offer for cluster in clusters for offer in _offers(view, cluster)] if services else [],
        malformed=malformed,
    )


def _offers(view: View, cluster: LatticeCluster) -> Iterator[PoolOffer]:
    """Yield the pools of a cluster sorted by id, including pools that are being removed."""
    pools = resolved_pools(cluster.spec.nodes)
    deployments: Sequence[Object] = view.indexed("MachineDeployment", BY_NAMESPACE, names.namespace(cluster.name))
    management = Management(deployments={each["metadata"]["name"]: each for each in deployments})
    is_ready = _is_ready(view, cluster)
    offers = [_offer(cluster, id, pool, management, is_ready) for id, pool in pools.items()]
    leaving = [
        PoolOffer(cluster.name, pool, labels={}, is_removed=True)
        for pool, _deployment in removed(cluster.name, management, pools)
    ]
    yield from sorted([*offers, *leaving], key=lambda offer: offer.pool)


def _offer(cluster: LatticeCluster, id: str, pool: WorkerPool, management: Management, is_ready: bool) -> PoolOffer:
    deployment = find_deployment(cluster.name, management, id).deployment
    wanted = replicas(deployment) if deployment is not None and is_autoscaled(cluster, pool) else pool.replicas
    unavailable_reason = None
    if not is_ready:
        unavailable_reason = Reason.CLUSTER_NOT_READY
    elif deployment is None or wanted == 0:
        unavailable_reason = Reason.POOL_EMPTY
    return PoolOffer(
        cluster=cluster.name,
        pool=id,
        labels={**pool.labels, names.POOL: id},
        taints=pool.taints,
        node_class=pool.node_class,
        replicas=wanted,
        unavailable_reason=unavailable_reason,
    )


def _is_ready(view: View, cluster: LatticeCluster) -> bool:
    """Return True if the cluster may have workers: the same rule as for scaling pools."""
    namespace = names.namespace(cluster.name)
    control_plane = view.get("KubeadmControlPlane", names.control_plane(cluster.name), namespace)
    is_initialized = is_control_plane_initialized(view.get("Cluster", cluster.name, namespace), control_plane)
    if cluster.is_deleting or not is_initialized:
        return False
    uid = view.cluster(cluster.name).uid
    return cluster.spec.pivot == Pivot.NEVER or (bool(uid) and uid == view.uid)


# plan


def plan_services(snapshot: ServicesSnapshot, _now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    blocked = [
        Blocked(object=_ref(service), reason=Reason.UNPLACED.value, facts=_facts(snapshot, service))
        for service in snapshot.services
        if not snapshot.match(service).fitting
    ]
    broken = [
        Blocked(object=_ref_to(*key), reason=Reason.INVALID.value, facts={"error": error})
        for key, error in sorted(snapshot.malformed.items())
    ]
    decisions = [decision for ref in explain if (decision := _decide(snapshot, ref)) is not None]
    return Planned(
        plan=Plan(
            capability=names.CAPABILITY,
            key=names.SERVICES_KEY,
            blocked=(*blocked, *broken),
            decisions=tuple(decisions),
        ),
        is_final=True,
    )


def _ref(service: LatticeService) -> ObjectRef:
    metadata = service.metadata
    return _ref_to(metadata.namespace, metadata.name, metadata.uid)


def _ref_to(namespace: str, name: str, uid: str = "") -> ObjectRef:
    return ObjectRef(api_version=names.API_VERSION, kind=names.SERVICE_KIND, namespace=namespace, name=name, uid=uid)


def _facts(snapshot: ServicesSnapshot, service: LatticeService) -> Object:
    """Return the number of matching pools, the first of them, and the number of pools that each reason excludes."""
    match = snapshot.match(service)
    first = [snapshot.offers[position] for position in match.fitting[:_NAMED]]
    return {
        "fitting": len(match.fitting),
        "pools": [f"{offer.cluster}/{offer.pool}" for offer in first],
        "refused": {reason.value: count for reason, count in match.counts.items()},
    }


def _decide(snapshot: ServicesSnapshot, ref: ObjectRef) -> Decision | None:
    if ref.kind != names.SERVICE_KIND:
        return None
    if error := snapshot.malformed.get((ref.namespace, ref.name)):
        return Decision(object=ref, rule=Reason.INVALID.value, facts={"error": error})
    wanted = (ref.namespace, ref.name)
    found = (each for each in snapshot.services if (each.metadata.namespace, each.metadata.name) == wanted)
    service = next(found, None)
    return None if service is None else _explain(snapshot, service, ref)


def _explain(snapshot: ServicesSnapshot, service: LatticeService, ref: ObjectRef) -> Decision:
    match, placement = snapshot.match(service), service.spec.placement
    taken = [
        Candidate(name=_offer_name(offer), is_taken=True, reason=Reason.FITS.value, facts=offer.facts)
        for offer in (snapshot.offers[position] for position in match.fitting)
    ]
    left = [
        Candidate(name=_offer_name(offer), is_taken=False, reason=reason.value, facts=facts)
        for offer, (reason, facts) in snapshot.pool_index.refusals(placement)
    ]
    remedies = dict.fromkeys(_REMEDIES[reason].value for reason in match.counts)
    return Decision(
        object=ref,
        rule=(Reason.PLACED if taken else Reason.UNPLACED).value,
        facts=_facts(snapshot, service),
        candidates=(*taken, *left),
        would_change=() if taken else tuple(remedies),
    )


def _offer_name(offer: PoolOffer) -> str:
    return f"{offer.cluster}/{offer.pool}"


# status


def status_services(snapshot: ServicesSnapshot, _plan: Plan, _outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    writes = []
    for service in snapshot.services:
        if service.metadata.deletion_timestamp is not None:
            continue
        after = wire(service_status(snapshot, service, now))
        if after != wire(service.status):
            writes.append(StatusWrite(object=_ref(service), status=after))
    return writes


def service_status(snapshot: ServicesSnapshot, service: LatticeService, now: datetime) -> LatticeServiceStatus:
    match, generation = snapshot.match(service), service.metadata.generation
    reason = Reason.PLACED if match.fitting else Reason.UNPLACED
    message = text(reason, _facts(snapshot, service))
    condition = Condition(
        type=PLACED,
        status=TRUE if match.fitting else FALSE,
        reason=reason.value,
        message=message,
        observed_generation=generation,
    )
    return LatticeServiceStatus(
        observed_generation=generation,
        phase=PLACED if match.fitting else UNPLACED,
        message=message,
        placements=tuple(_placed_pool(snapshot.offers[position]) for position in match.fitting[:LISTED]),
        refused=tuple(_rejected_pools(snapshot, service)),
        conditions=with_condition(service.status.conditions, condition, now),
    )


def _placed_pool(offer: PoolOffer) -> PlacedPool:
    return PlacedPool(
        cluster=offer.cluster, worker_pool=offer.pool, node_class=offer.node_class, replicas=offer.replicas
    )


def _rejected_pools(snapshot: ServicesSnapshot, service: LatticeService) -> Iterator[RefusedPool]:
    for offer, (reason, facts) in snapshot.pool_index.refusals(service.spec.placement, LISTED):
        yield RefusedPool(
            cluster=offer.cluster, worker_pool=offer.pool, reason=reason.value, message=text(reason, facts)
        )


def wire(status: LatticeServiceStatus) -> Object:
    """Return the status as the API server stores it."""
    found: Object = {
        "observedGeneration": status.observed_generation,
        "phase": status.phase,
        "message": status.message,
        "placements": [msgspec.to_builtins(each) for each in status.placements],
        "refused": [msgspec.to_builtins(each) for each in status.refused],
        "conditions": to_wire(status.conditions),
    }
    return {key: value for key, value in found.items() if value not in ("", [], 0)}
