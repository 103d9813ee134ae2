"""LatticeNodeClasses: which pools name them, and whether they fit; only their status is written.

A class is ready when every pool that names it can be made from it. All classes are looked at together, since one change
of a cluster may concern several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages import text
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.types import (
    LatticeCluster,
    LatticeNodeClass,
    LatticeNodeClassStatus,
    resolved_pools,
)
from nodeyard.kube.conditions import FALSE, TRUE, to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.model import Blocked, ObjectRef, Plan, Planned
from nodeyard.runtime.capability import StatusWrite, View

LISTED = 50
READY = "Ready"


@dataclass(frozen=True)
class Use:
    """A pool that names a class, on a provider."""

    cluster: str
    pool: str
    provider: str

    def __str__(self) -> str:
        return f"{self.cluster}/{self.pool}"


@dataclass(frozen=True)
class ClassesSnapshot:
    classes: Sequence[LatticeNodeClass] = ()
    """By name."""
    uses: Mapping[str, Sequence[Use]] = field(default_factory=dict)
    """By class, those by cluster and pool."""
    malformed: Mapping[str, str] = field(default_factory=dict)
    """Classes that did not decode, with the error."""


def collect_classes(view: View, _now: datetime) -> ClassesSnapshot:
    uses: dict[str, list[Use]] = {}
    clusters: Sequence[LatticeCluster] = view.all(names.CLUSTER_KIND)
    for cluster in clusters:
        provider = cluster.spec.provider.config.name
        for id, pool in resolved_pools(cluster.spec.nodes).items():
            if pool.node_class:
                uses.setdefault(pool.node_class, []).append(Use(cluster.name, id, provider))
    malformed = {key[1]: error for key, error in view.malformed(names.CLASS_KIND).items()}
    return ClassesSnapshot(view.all(names.CLASS_KIND), uses, malformed)


def plan_classes(snapshot: ClassesSnapshot, _now: datetime) -> Planned:
    blocked = [
        Blocked(object=_ref_to(name), reason=Reason.INVALID.value, facts={"class": name, "error": error})
        for name, error in sorted(snapshot.malformed.items())
    ]
    return Planned(plan=Plan(capability=names.CAPABILITY, key=names.CLASSES_KEY, blocked=tuple(blocked)))


def status_classes(snapshot: ClassesSnapshot, _plan: Plan, _outcome: Outcome, now: datetime) -> list[StatusWrite]:
    writes = []
    for each in snapshot.classes:
        after = _wire(_status(snapshot, each, now))
        if after != _wire(each.status):
            writes.append(StatusWrite(object=_ref_to(each.metadata.name, each.metadata.uid), status=after))
    return writes


def _status(snapshot: ClassesSnapshot, each: LatticeNodeClass, now: datetime) -> LatticeNodeClassStatus:
    uses = snapshot.uses.get(each.metadata.name, ())
    generation = each.metadata.generation
    condition = msgspec.structs.replace(_ready(each, uses), observed_generation=generation)
    return LatticeNodeClassStatus(
        observed_generation=generation,
        pools=tuple(str(use) for use in uses[:LISTED]),
        conditions=with_condition(each.status.conditions, condition, now),
    )


def _ready(each: LatticeNodeClass, uses: Sequence[Use]) -> Condition:
    lacking = [use for use in uses if use.provider and getattr(each.spec.providers, use.provider) is None]
    if not lacking:
        return Condition(type=READY, status=TRUE, reason=Reason.RECONCILED.value, message=text(Reason.RECONCILED, {}))
    facts: Object = {
        "class": each.metadata.name,
        "pool": str(lacking[0]),
        "error": f"it has no entry for {lacking[0].provider}; add spec.providers.{lacking[0].provider}",
    }
    reason = Reason.NODE_CLASS_UNFIT
    return Condition(type=READY, status=FALSE, reason=reason.value, message=text(reason, facts))


def _wire(status: LatticeNodeClassStatus) -> Object:
    found: Object = {"observedGeneration": status.observed_generation, "conditions": to_wire(status.conditions)}
    return {**found, "pools": list(status.pools)} if status.pools else found


def _ref_to(name: str, uid: str = "") -> ObjectRef:
    return ObjectRef(api_version=names.API_VERSION, kind=names.CLASS_KIND, name=name, uid=uid)
