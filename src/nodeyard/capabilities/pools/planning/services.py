"""Plans LatticeServices: blocks those that no pool matches and explains the rest. Only their status is written.

All services share one workqueue key, because a pool that is added or removed may affect any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.blocks import Invalid
from nodeyard.capabilities.pools.messages.placement import Fits, NoPoolFits, Placed
from nodeyard.capabilities.pools.messages.states import (
    AddLabel,
    AddPoolAgain,
    AddToleration,
    ScaleUp,
    WaitForControlPlane,
)
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import ServicesSnapshot
from nodeyard.capabilities.pools.types import LatticeService
from nodeyard.plan.message import NAMED, Message
from nodeyard.plan.model import Blocked, Candidate, Decision, ObjectRef, Plan, Planned

_REMEDIES: Final[Mapping[Reason, Message]] = {
    Reason.LABEL_MISSING: AddLabel(),
    Reason.LABEL_DIFFERS: AddLabel(),
    Reason.TAINT_NOT_TOLERATED: AddToleration(),
    Reason.POOL_EMPTY: ScaleUp(),
    Reason.POOL_DRAINING: AddPoolAgain(),
    Reason.CLUSTER_NOT_READY: WaitForControlPlane(),
}


def service_ref(service: LatticeService) -> ObjectRef:
    metadata = service.metadata
    return _ref_to(metadata.namespace, metadata.name, metadata.uid)


def _ref_to(namespace: str, name: str, uid: str = "") -> ObjectRef:
    return ObjectRef(api_version=names.API_VERSION, kind=names.SERVICE_KIND, namespace=namespace, name=name, uid=uid)


def plan_services(snapshot: ServicesSnapshot, _now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    unplaced = [(service_ref(service), placement_state(snapshot, service)) for service in snapshot.services]
    blocked: list[tuple[ObjectRef, Message]] = [
        *((ref, message) for ref, message in unplaced if isinstance(message, NoPoolFits)),
        *((_ref_to(*key), Invalid(error=error)) for key, error in sorted(snapshot.malformed.items())),
    ]
    decisions = [decision for ref in explain if (decision := _decide(snapshot, ref)) is not None]
    return Planned(
        plan=Plan(
            capability=names.CAPABILITY,
            key=names.SERVICES_KEY,
            blocked=tuple(Blocked(object=ref, reason=message.reason, facts=message) for ref, message in blocked),
            decisions=tuple(decisions),
        ),
        is_final=True,
    )


def placement_state(snapshot: ServicesSnapshot, service: LatticeService) -> Placed | NoPoolFits:
    """Return the matching pools, or how many pools each reason excludes."""
    match = snapshot.match(service)
    if not match.fitting:
        return NoPoolFits(refused={reason.value: count for reason, count in match.counts.items()})
    first = tuple(str(snapshot.offers[position]) for position in match.fitting[:NAMED])
    return Placed(fitting=len(match.fitting), pools=first)


def _decide(snapshot: ServicesSnapshot, ref: ObjectRef) -> Decision | None:
    if ref.kind != names.SERVICE_KIND:
        return None
    if error := snapshot.malformed.get((ref.namespace, ref.name)):
        return Decision.of(ref, Invalid(error=error))
    wanted = (ref.namespace, ref.name)
    found = (each for each in snapshot.services if (each.metadata.namespace, each.metadata.name) == wanted)
    service = next(found, None)
    return None if service is None else _explain(snapshot, service, ref)


def _explain(snapshot: ServicesSnapshot, service: LatticeService, ref: ObjectRef) -> Decision:
    match, state = snapshot.match(service), placement_state(snapshot, service)
    fitting = [snapshot.offers[position] for position in match.fitting]
    refused = snapshot.pool_index.refusals(service.spec.placement)
    candidates = [
        *(Candidate.of(str(each), Fits(pool=each.pool, cluster=each.cluster), is_taken=True) for each in fitting),
        *(Candidate.of(str(each), message) for each, message in refused),
    ]
    remedies = {} if fitting else dict.fromkeys(_REMEDIES[reason] for reason in match.counts)
    return Decision.of(ref, state, candidates, remedies)
