"""Status of LatticeServices: the pools that match, and the others with the reason that excludes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.capabilities.pools.messages.placement import Placed
from nodeyard.capabilities.pools.planning.pool_index import PoolOffer
from nodeyard.capabilities.pools.planning.services import placement_state, service_ref
from nodeyard.capabilities.pools.report.status import condition
from nodeyard.capabilities.pools.snapshot import ServicesSnapshot
from nodeyard.capabilities.pools.types import LatticeService, LatticeServiceStatus, PlacedPool, RefusedPool
from nodeyard.kube.conditions import to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import StatusWrite

LISTED: Final = 50
"""The maximum number of pools of each kind in the status."""
PLACED: Final = "Placed"
UNPLACED: Final = "Unplaced"


def status_services(snapshot: ServicesSnapshot, now: datetime) -> Sequence[StatusWrite]:
    writes = []
    for service in snapshot.services:
        if service.metadata.deletion_timestamp is not None:
            continue
        after = wire(service_status(snapshot, service, now))
        if after != wire(service.status):
            writes.append(StatusWrite(object=service_ref(service), status=after))
    return writes


def service_status(snapshot: ServicesSnapshot, service: LatticeService, now: datetime) -> LatticeServiceStatus:
    match, generation = snapshot.match(service), service.metadata.generation
    state = placement_state(snapshot, service)
    placed = condition(PLACED, isinstance(state, Placed), state, generation)
    return LatticeServiceStatus(
        observed_generation=generation,
        phase=PLACED if isinstance(state, Placed) else UNPLACED,
        message=placed.message,
        placements=tuple(_placed_pool(snapshot.offers[position]) for position in match.fitting[:LISTED]),
        refused=tuple(_refused_pools(snapshot, service)),
        conditions=with_condition(service.status.conditions, placed, now),
    )


def _placed_pool(offer: PoolOffer) -> PlacedPool:
    return PlacedPool(
        cluster=offer.cluster, worker_pool=offer.pool, node_class=offer.node_class, replicas=offer.replicas
    )


def _refused_pools(snapshot: ServicesSnapshot, service: LatticeService) -> Iterator[RefusedPool]:
    for offer, message in snapshot.pool_index.refusals(service.spec.placement, LISTED):
        yield RefusedPool(
            cluster=offer.cluster, worker_pool=offer.pool, reason=str(message.reason), message=message.text()
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
