"""LatticeServices, matched with the pools of all LatticeClusters: what is seen, planned, explained and written.

Nothing is moved: the outcome is the status of each service, and an answer to `why`. All services are matched together,
since a pool that appears or goes concerns any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

import msgspec

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.collecting import BY_NAMESPACE
from nodeyard.capabilities.pools.generation.autoscaling import is_autoscaled
from nodeyard.capabilities.pools.messages import text
from nodeyard.capabilities.pools.planning.adoption import belonging, removed
from nodeyard.capabilities.pools.planning.observed import is_control_plane_initialized, replicas
from nodeyard.capabilities.pools.planning.placement import Market, Match, Offer
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
    """By namespace and name."""
    offers: Sequence[Offer] = ()
    """By cluster and pool."""
    malformed: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Services that did not decode, by namespace and name, with the error."""

    @cached_property
    def market(self) -> Market:
        return Market(self.offers)

    def match(self, service: LatticeService) -> Match:
        return self.market.match(service.spec.placement)


# what is seen


def collect_services(view: View, _now: datetime) -> ServicesSnapshot:
    clusters: Sequence[LatticeCluster] = view.all(names.CLUSTER_KIND)
    services: Sequence[LatticeService] = view.all(names.SERVICE_KIND)
    malformed = dict(view.malformed(names.SERVICE_KIND))
    return ServicesSnapshot(
        services=[each for each in services if (each.metadata.namespace, each.metadata.name) not in malformed],
        # Nobody looks at the pools of all clusters where there is no service to be placed.
        offers=[offer for cluster in clusters for offer in _offers(view, cluster)] if services else [],
        malformed=malformed,
    )


def _offers(view: View, cluster: LatticeCluster) -> Iterator[Offer]:
    """The pools of a cluster, those that are being drained included, by id."""
    pools = resolved_pools(cluster.spec.nodes)
    deployments: Sequence[Object] = view.indexed("MachineDeployment", BY_NAMESPACE, names.namespace(cluster.name))
    management = Management(deployments={each["metadata"]["name"]: each for each in deployments})
    is_ready = _is_ready(view, cluster)
    offers = [_offer(cluster, id, pool, management, is_ready) for id, pool in pools.items()]
    leaving = [
        Offer(cluster.name, pool, labels={}, is_leaving=True)
        for pool, _deployment in removed(cluster.name, management, pools)
    ]
    yield from sorted([*offers, *leaving], key=lambda offer: offer.pool)


def _offer(cluster: LatticeCluster, id: str, pool: WorkerPool, management: Management, is_ready: bool) -> Offer:
    deployment = belonging(cluster.name, management, id).deployment
    wanted = replicas(deployment) if deployment is not None and is_autoscaled(cluster, pool) else pool.replicas
    hindrance = None
    if not is_ready:
        hindrance = Reason.CLUSTER_NOT_READY
    elif deployment is None or wanted == 0:
        hindrance = Reason.POOL_EMPTY
    return Offer(
        cluster=cluster.name,
        pool=id,
        labels={**pool.labels, names.POOL: id},
        taints=pool.taints,
        node_class=pool.node_class,
        replicas=wanted,
        hindrance=hindrance,
    )


def _is_ready(view: View, cluster: LatticeCluster) -> bool:
    """Whether its workers may be there: as for scaling them."""
    namespace = names.namespace(cluster.name)
    control_plane = view.get("KubeadmControlPlane", names.control_plane(cluster.name), namespace)
    is_initialized = is_control_plane_initialized(view.get("Cluster", cluster.name, namespace), control_plane)
    if cluster.is_deleting or not is_initialized:
        return False
    uid = view.cluster(cluster.name).uid
    return cluster.spec.pivot == Pivot.NEVER or (bool(uid) and uid == view.uid)


# what is planned


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
    """How many pools fit, the first of them, and how many each reason refused."""
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
        Candidate(name=_name(offer), is_taken=True, reason=Reason.FITS.value, facts=offer.facts)
        for offer in (snapshot.offers[position] for position in match.fitting)
    ]
    left = [
        Candidate(name=_name(offer), is_taken=False, reason=reason.value, facts=facts)
        for offer, (reason, facts) in snapshot.market.refusals(placement)
    ]
    remedies = dict.fromkeys(_REMEDIES[reason].value for reason in match.counts)
    return Decision(
        object=ref,
        rule=(Reason.PLACED if taken else Reason.UNPLACED).value,
        facts=_facts(snapshot, service),
        candidates=(*taken, *left),
        would_change=() if taken else tuple(remedies),
    )


def _name(offer: Offer) -> str:
    return f"{offer.cluster}/{offer.pool}"


# what is written


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
        placements=tuple(_placed(snapshot.offers[position]) for position in match.fitting[:LISTED]),
        refused=tuple(_refused(snapshot, service)),
        conditions=with_condition(service.status.conditions, condition, now),
    )


def _placed(offer: Offer) -> PlacedPool:
    return PlacedPool(
        cluster=offer.cluster, worker_pool=offer.pool, node_class=offer.node_class, replicas=offer.replicas
    )


def _refused(snapshot: ServicesSnapshot, service: LatticeService) -> Iterator[RefusedPool]:
    for offer, (reason, facts) in snapshot.market.refusals(service.spec.placement, LISTED):
        yield RefusedPool(
            cluster=offer.cluster, worker_pool=offer.pool, reason=reason.value, message=text(reason, facts)
        )


def wire(status: LatticeServiceStatus) -> Object:
    """As the API server keeps it."""
    found: Object = {
        "observedGeneration": status.observed_generation,
        "phase": status.phase,
        "message": status.message,
        "placements": [msgspec.to_builtins(each) for each in status.placements],
        "refused": [msgspec.to_builtins(each) for each in status.refused],
        "conditions": to_wire(status.conditions),
    }
    return {key: value for key, value in found.items() if value not in ("", [], 0)}
