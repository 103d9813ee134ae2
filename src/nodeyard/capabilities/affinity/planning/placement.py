"""Decide whether a pod may be admitted: by the class of its application, or by the policy of its tenant.

    pod of                             rule
    an application with a class        every node it may run on must be in the class, or in a previous class while the
                                       application is changing its class
    an application without a class     the same as for no application
    a release without a record         inside the class in its label, which the tenant must allow; without a label,
                                       and if the tenant requires a class, inside one of the allowed classes
    no application                     by unownedPods of the tenant: anywhere, or inside one of the allowed classes
    an unknown application             inside every class that it could turn out to have
    several applications               all of the above must hold
    any, with spec.nodeName            that node must be in the class too

The class sets its `enforcement`; a namespace may weaken it if the class permits that. A pod whose class does not exist
is denied. A pod template is checked like the pods that it creates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple, Protocol

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.placement import placement_text
from nodeyard.capabilities.affinity.planning.compiled_classes import compiled
from nodeyard.capabilities.affinity.planning.containment import (
    Counterexample,
    Inside,
    Outside,
    Verdict,
    contains_pod,
    size_of,
)
from nodeyard.capabilities.affinity.planning.lineage import Claim, DeadEnd, Lineage, Owned, Unknown
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import EffectivePolicy
from nodeyard.capabilities.affinity.types import AffinityClass, Enforcement
from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE
from nodeyard.kube.node_affinity import NodeSelector, node_matcher
from nodeyard.kube.objects import ObjectMeta


class Decision(StrEnum):
    """The decision about a pod; also a metric label."""

    ALLOWED = "allowed"
    WARNED = "warned"
    AUDITED = "audited"
    DENIED = "denied"


class Subject(NamedTuple):
    """The pod or pod template to check."""

    what: str
    """Its name in messages: `pod tenant-acme/main-db-1`."""
    namespace: str
    node_selector: Mapping[str, str]
    required: NodeSelector | None = None
    node: str = ""
    """The node that a DaemonSet created it for."""
    node_name: str = ""
    """Its `spec.nodeName`, which bypasses the scheduler."""


class PlacementContext(Protocol):
    """The state of the cluster that decides a placement; read lazily."""

    def affinity_class(self, name: str) -> AffinityClass | None: ...

    def classes(self) -> Iterable[str]:
        """Return the names of all classes."""

    def classes_here(self) -> Iterable[str]:
        """Return the names of the classes of releases and applications in the subject's namespace."""

    def namespace_labels(self) -> Mapping[str, str]: ...

    def nodes(self) -> Iterable[ObjectMeta]: ...

    def node(self, name: str) -> ObjectMeta | None: ...

    def policy(self) -> EffectivePolicy:
        """Return the effective policy of the subject's namespace."""


class Placement(NamedTuple):
    decision: Decision
    reason: Reason
    facts: Object
    affinity_class: str = ""
    """The class that it was checked against; empty if there is none."""
    message: str = ""
    """The violation, if there is one."""
    warnings: tuple[str, ...] = ()

    @property
    def is_allowed(self) -> bool:
        return self.decision is not Decision.DENIED

    @property
    def is_inside(self) -> bool:
        return self.decision is Decision.ALLOWED


_DECISIONS: Final = {
    Enforcement.DENY: Decision.DENIED,
    Enforcement.WARN: Decision.WARNED,
    Enforcement.AUDIT: Decision.AUDITED,
}
_STRICTNESS: Final = (Enforcement.AUDIT, Enforcement.WARN, Enforcement.DENY)
_MAX_NODES_TRIED: Final = 64
"""Limit of nodes tried, and of the size of the terms, to find a node to name in a denial."""
_SEVERITIES: Final = (Decision.ALLOWED, *(_DECISIONS[each] for each in _STRICTNESS))


def place(subject: Subject, lineage: Lineage, context: PlacementContext) -> Placement:
    if isinstance(lineage, Owned):
        return _place_owned(subject, lineage, context)
    if isinstance(lineage, Unknown):
        return _place_unknown(subject, lineage.obstacle, context)
    return _place_unowned(subject, context)


def is_exempt(namespace: str, labels: Mapping[str, str]) -> bool:
    """Return whether pods of a namespace are never checked; the namespaceSelector of the webhooks says the same."""
    is_system = namespace in names.EXEMPT_NAMESPACES or namespace == NAMESPACE
    return is_system or labels.get(names.SYSTEM_NAMESPACE) == names.TRUE


# pods of an application


def _place_owned(subject: Subject, lineage: Owned, context: PlacementContext) -> Placement:
    """Check the pod against every owner; the strictest decision counts."""
    placements = [_place_claim(subject, each, context) for each in lineage.claims]
    if lineage.obstacle is not None:
        placements.append(_place_unknown(subject, lineage.obstacle, context))
    worst = _strictest(placements)
    if len(placements) == 1:
        return worst
    warnings = dict.fromkeys(warning for each in placements for warning in each.warnings)
    if len(lineage.claims) > 1:
        warnings[_ambiguity_warning(subject, lineage)] = None
    return worst._replace(warnings=tuple(warnings))


def _strictest(placements: Sequence[Placement]) -> Placement:
    """Return the strictest placement; among equals, one with a class."""
    return max(placements, key=lambda each: (_SEVERITIES.index(each.decision), bool(each.affinity_class)))


def _place_claim(subject: Subject, claim: Claim, context: PlacementContext) -> Placement:
    name = claim.affinity_class
    facts: Object = {"subject": subject.what, "class": name, **_owner_facts(claim)}
    if not name:
        return _place_classless(subject, claim, facts, context)
    if claim.record is None and (refused := _refuse_claim(name, facts, context.policy())) is not None:
        return refused
    placement = _check_class(subject, name, facts, context)
    if placement.is_inside:
        return placement
    for previous in claim.previous:
        if _fits_previous(subject, previous, claim, facts, context):
            facts = {**facts, "previous": previous}
            return Placement(Decision.ALLOWED, Reason.INSIDE_PREVIOUS, facts, affinity_class=previous)
    return placement


def _refuse_claim(name: str, facts: Object, policy: EffectivePolicy) -> Placement | None:
    """Deny a class that is only a label of the release, unless the tenant allows it."""
    if policy.allowed is None or name in policy.allowed:
        return None
    tenant = "" if policy.tenant is None else policy.tenant.name
    facts = {**facts, "tenant": tenant, "allowed": list(policy.allowed)}
    return _violation(Decision.DENIED, Reason.CLAIM_REFUSED, facts, name)


def _place_classless(subject: Subject, claim: Claim, facts: Object, context: PlacementContext) -> Placement:
    """Apply the tenant's rule for unowned pods and, without a record, the rule that every application has a class."""
    policy = context.policy()
    if not policy.holds_unowned and (claim.record is not None or not policy.needs_class):
        return Placement(Decision.ALLOWED, Reason.UNRESTRICTED, facts)
    return _within_allowed(subject, context, {**facts, "backed": claim.record is not None}, Reason.CLASSLESS_REFUSED)


def _fits_previous(subject: Subject, previous: str, claim: Claim, facts: Object, context: PlacementContext) -> bool:
    if previous:
        return _is_inside(subject, previous, context)
    return _place_classless(subject, claim, facts, context).is_inside


def _owner_facts(claim: Claim) -> Object:
    application = claim.application
    return {"application": f"{application.kind} {application.name}", "release": claim.release.ref.name}


def _check_class(subject: Subject, name: str, facts: Object, context: PlacementContext) -> Placement:
    affinity_class = context.affinity_class(name)
    if affinity_class is None:
        return _violation(Decision.DENIED, Reason.CLASS_MISSING, facts, name)
    verdict = _check_containment(subject, affinity_class, context)
    decision = _DECISIONS[enforcement_of(affinity_class, context.namespace_labels())]
    if isinstance(verdict, Inside):
        if not _is_bound_inside(subject, affinity_class, context):
            is_there = context.node(subject.node_name) is not None
            return _violation(
                decision, Reason.NODE_OUTSIDE, {**facts, "node": subject.node_name, "known": is_there}, name
            )
        if not verdict.is_vacuous:
            return Placement(Decision.ALLOWED, Reason.INSIDE, facts, affinity_class=name)
        warning = placement_text(Reason.UNSATISFIABLE, facts)
        return Placement(Decision.ALLOWED, Reason.UNSATISFIABLE, facts, affinity_class=name, warnings=(warning,))
    if not isinstance(verdict, Outside):
        return _violation(decision, Reason.TOO_COMPLEX, facts, name)
    facts = {**facts, "example": _describe(verdict.counterexample), **_reachable_node(subject, affinity_class, context)}
    if verdict.missing is None:
        return _violation(decision, Reason.OUTSIDE, facts, name)
    key, value = verdict.missing
    has = subject.node_selector.get(key)
    facts = {**facts, "key": key, "value": value, **({} if has is None else {"has": has})}
    return _violation(decision, Reason.MISSING_SELECTOR, facts, name)


def _reachable_node(subject: Subject, affinity_class: AffinityClass, context: PlacementContext) -> Object:
    """Return a node outside the class that the pod could run on, if one is among the first nodes."""
    if subject.node_name:
        return {"node": subject.node_name}
    if subject.required is not None and size_of(subject.required) > _MAX_NODES_TRIED:
        return {}
    made, goes_to = compiled(affinity_class), node_matcher(subject.node_selector, subject.required)
    for node in islice(context.nodes(), _MAX_NODES_TRIED):
        if goes_to(node.labels, node.name) and not made.matches(node.labels, node.name):
            return {"node": node.name}
    return {}


def enforcement_of(affinity_class: AffinityClass, namespace_labels: Mapping[str, str]) -> Enforcement:
    own = affinity_class.spec.enforcement
    if not affinity_class.spec.allow_namespace_override or names.ENFORCEMENT not in namespace_labels:
        return own
    try:
        wanted = Enforcement(namespace_labels[names.ENFORCEMENT])
    except ValueError:
        return own
    return min(own, wanted, key=_STRICTNESS.index)


def _is_inside(subject: Subject, name: str, context: PlacementContext) -> bool:
    affinity_class = context.affinity_class(name)
    if affinity_class is None:
        return False
    is_contained = isinstance(_check_containment(subject, affinity_class, context), Inside)
    return is_contained and _is_bound_inside(subject, affinity_class, context)


def _is_bound_inside(subject: Subject, affinity_class: AffinityClass, context: PlacementContext) -> bool:
    """Return whether spec.nodeName is in the class; an unknown node is not."""
    if not subject.node_name:
        return True
    node = context.node(subject.node_name)
    return node is not None and compiled(affinity_class).matches(node.labels, node.name)


def _check_containment(subject: Subject, affinity_class: AffinityClass, context: PlacementContext) -> Verdict:
    node = context.node(subject.node) if subject.node else None
    return contains_pod(compiled(affinity_class), subject.node_selector, subject.required, node)


def _describe(example: Counterexample) -> str:
    parts = [f"{key}={value}" if value is not None else f"no label {key}" for key, value in example.labels.items()]
    if example.node_name is not None:
        parts.append(f"the name {example.node_name}")
    return ", ".join(parts) or "any labels"


def _violation(decision: Decision, reason: Reason, facts: Object, name: str) -> Placement:
    message = placement_text(reason, facts)
    warnings = (message,) if decision is Decision.WARNED else ()
    return Placement(decision, reason, facts, name, message, warnings)


def _ambiguity_warning(subject: Subject, lineage: Owned) -> str:
    releases = ", ".join(f"{each.release.ref.name} ({_owner_facts(each)['application']})" for each in lineage.claims)
    return placement_text(Reason.OWNERS_AMBIGUOUS, {"subject": subject.what, "releases": releases})


# pods of no application


def _place_unowned(subject: Subject, context: PlacementContext) -> Placement:
    facts: Object = {"subject": subject.what}
    policy = context.policy()
    if policy.tenant is None or not policy.holds_unowned:
        return Placement(Decision.ALLOWED, Reason.UNOWNED_ALLOWED, facts)
    return _within_allowed(subject, context, facts, Reason.UNOWNED_REFUSED)


def _within_allowed(subject: Subject, context: PlacementContext, facts: Object, reason: Reason) -> Placement:
    """Allow the pod if it is inside one of the allowed classes; otherwise deny it for this reason."""
    policy = context.policy()
    allowed = sorted(context.classes()) if policy.allowed is None else policy.allowed
    facts = {**facts, "tenant": "" if policy.tenant is None else policy.tenant.name, "allowed": list(allowed)}
    for name in allowed:
        if _is_inside(subject, name, context):
            return Placement(Decision.ALLOWED, Reason.INSIDE, {**facts, "class": name}, affinity_class=name)
    return _violation(Decision.DENIED, reason, facts, "")


# pods of an unknown application


def _place_unknown(subject: Subject, obstacle: DeadEnd, context: PlacementContext) -> Placement:
    """Check the pod against all classes of its namespace, since a release is in the namespace of what it installs.

    The pod may also belong to no application, so the tenant's rule for unowned pods counts as well.
    """
    facts: Object = {"subject": subject.what, "owner": str(obstacle.ref), "error": obstacle.detail}
    could_be = [
        _check_class(subject, name, {"subject": subject.what, "class": name}, context)
        for name in sorted(set(context.classes_here()))
    ]
    worst = _strictest((*could_be, _place_unowned(subject, context)))
    if worst.is_inside:
        warning = placement_text(Reason.OWNER_HARMLESS, facts)
        return Placement(Decision.ALLOWED, obstacle.reason, facts, warnings=(warning,))
    name = worst.affinity_class
    return _violation(worst.decision, obstacle.reason, {**facts, "class": name} if name else facts, name)
