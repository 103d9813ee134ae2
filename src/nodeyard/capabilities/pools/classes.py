"""Reconciles LatticeNodeClasses: only their status is written.

A class is Ready if it has an entry for the provider of every pool that uses it. All classes share one workqueue key,
because one change of a cluster may affect several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation import class_inputs
from nodeyard.capabilities.pools.messages import text
from nodeyard.capabilities.pools.planning.machine_state import replicas
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.types import (
    LatticeCluster,
    LatticeNodeClass,
    LatticeNodeClassStatus,
    resolved_pools,
)
from nodeyard.kube import meta
from nodeyard.kube.conditions import FALSE, TRUE, to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.model import Blocked, Candidate, Decision, ObjectRef, Plan, Planned
from nodeyard.runtime.capability import StatusWrite, View

LISTED = 50
READY = "Ready"


@dataclass(frozen=True)
class Use:
    """A pool that uses a class, and its provider."""

    cluster: str
    pool: str
    provider: str
    nodes: int = 0
    """The replicas of its MachineDeployment."""
    made_from: str = ""
    """The hash of the class spec from which the machines were created; empty if it is not recorded."""
    inputs: str = ""
    """The hash of the current class spec."""

    @property
    def is_behind(self) -> bool:
        return bool(self.nodes and self.made_from and self.made_from != self.inputs)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.pool}"


@dataclass(frozen=True)
class ClassesSnapshot:
    classes: Sequence[LatticeNodeClass] = ()
    """Sorted by name."""
    uses: Mapping[str, Sequence[Use]] = field(default_factory=dict)
    """Uses by class, sorted by cluster and pool."""
    malformed: Mapping[str, str] = field(default_factory=dict)
    """Classes that do not decode, with the error."""


def collect_classes(view: View, _now: datetime) -> ClassesSnapshot:
    uses: dict[str, list[Use]] = {}
    clusters: Sequence[LatticeCluster] = view.all(names.CLUSTER_KIND)
    for cluster in clusters:
        provider = cluster.spec.provider.config.name
        for id, pool in resolved_pools(cluster.spec.nodes).items():
            if pool.node_class:
                uses.setdefault(pool.node_class, []).append(_use(view, cluster, id, pool.node_class, provider))
    malformed = {key[1]: error for key, error in view.malformed(names.CLASS_KIND).items()}
    return ClassesSnapshot(view.all(names.CLASS_KIND), uses, malformed)


def _use(view: View, cluster: LatticeCluster, id: str, class_name: str, provider: str) -> Use:
    node_class: LatticeNodeClass | None = view.get(names.CLASS_KIND, class_name)
    deployment = view.get("MachineDeployment", names.deployment(cluster.name, id), names.namespace(cluster.name))
    if node_class is None or deployment is None:
        return Use(cluster.name, id, provider)
    recorded = meta.annotations(deployment)
    is_of_class = recorded.get(names.NODE_CLASS) == class_name
    made_from = recorded.get(names.CLASS_INPUTS, "") if is_of_class else ""
    return Use(cluster.name, id, provider, replicas(deployment), made_from, class_inputs(cluster, node_class))


def plan_classes(snapshot: ClassesSnapshot, _now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    blocked = [
        Blocked(object=_ref_to(name), reason=Reason.INVALID.value, facts={"class": name, "error": error})
        for name, error in sorted(snapshot.malformed.items())
    ]
    decisions = [found for ref in explain if (found := _decide(snapshot, ref)) is not None]
    plan = Plan(capability=names.CAPABILITY, key=names.CLASSES_KEY, blocked=tuple(blocked), decisions=tuple(decisions))
    return Planned(plan=plan)


def _decide(snapshot: ClassesSnapshot, ref: ObjectRef) -> Decision | None:
    """Explain a class: the pools that use it, and the pools that cannot."""
    if ref.kind != names.CLASS_KIND:
        return None
    if error := snapshot.malformed.get(ref.name):
        return Decision(object=ref, rule=Reason.INVALID.value, facts={"class": ref.name, "error": error})
    node_class = next((each for each in snapshot.classes if each.metadata.name == ref.name), None)
    uses = snapshot.uses.get(ref.name, ())
    if node_class is None or not uses:
        return Decision(object=ref, rule=Reason.CLASS_UNUSED.value, facts={"class": ref.name})
    candidates = [_candidate(node_class, use) for use in uses]
    refused = next((each for each in candidates if not each.is_taken), None)
    if refused is not None:
        changes = (Reason.MEND_CLASS.value,)
        return Decision(
            object=ref, rule=refused.reason, facts=refused.facts, candidates=tuple(candidates), would_change=changes
        )
    facts: Object = {
        "class": ref.name,
        "pools": len(uses),
        "nodes": sum(use.nodes for use in uses),
        "behind": sum(use.nodes for use in uses if use.is_behind),
    }
    return Decision(object=ref, rule=Reason.CLASS_USED.value, facts=facts, candidates=tuple(candidates))


def _candidate(node_class: LatticeNodeClass, use: Use) -> Candidate:
    if _lacks_provider(node_class, use):
        facts = _unfit_facts(node_class, use)
        return Candidate(name=str(use), is_taken=False, reason=Reason.NODE_CLASS_UNFIT.value, facts=facts)
    reason = Reason.CLASS_BEHIND if use.is_behind else Reason.CLASS_MADE
    facts = {"cluster": use.cluster, "pool": use.pool, "nodes": use.nodes}
    return Candidate(name=str(use), is_taken=True, reason=reason.value, facts=facts)


def _lacks_provider(node_class: LatticeNodeClass, use: Use) -> bool:
    return bool(use.provider) and getattr(node_class.spec.providers, use.provider) is None


def _unfit_facts(node_class: LatticeNodeClass, use: Use) -> Object:
    return {
        "class": node_class.metadata.name,
        "pool": str(use),
        "error": f"it has no entry for {use.provider}; add spec.providers.{use.provider}",
    }


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
    lacking = [use for use in uses if _lacks_provider(each, use)]
    if not lacking:
        return Condition(type=READY, status=TRUE, reason=Reason.RECONCILED.value, message=text(Reason.RECONCILED, {}))
    reason = Reason.NODE_CLASS_UNFIT
    return Condition(
        type=READY, status=FALSE, reason=reason.value, message=text(reason, _unfit_facts(each, lacking[0]))
    )


def _wire(status: LatticeNodeClassStatus) -> Object:
    found: Object = {"observedGeneration": status.observed_generation, "conditions": to_wire(status.conditions)}
    return {**found, "pools": list(status.pools)} if status.pools else found


def _ref_to(name: str, uid: str = "") -> ObjectRef:
    return ObjectRef(api_version=names.API_VERSION, kind=names.CLASS_KIND, name=name, uid=uid)
