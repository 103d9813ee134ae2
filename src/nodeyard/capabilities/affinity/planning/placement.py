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

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple, Protocol

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.pods import (
    ApplicationWithoutClass,
    ClasslessRefused,
    InsideClass,
    InsidePreviousClass,
    MissingNodeSelector,
    NodeNameOutsideClass,
    OutsideClass,
    OwnerForbidden,
    OwnerForbiddenButHarmless,
    OwnersAmbiguous,
    OwnerUnknown,
    OwnerUnknownButHarmless,
    PodClassMissing,
    ReleaseClassNotAllowed,
    TooComplex,
    UnbackedRefused,
    UnownedAllowed,
    UnownedRefused,
    Unsatisfiable,
)
from nodeyard.capabilities.affinity.planning.containment import (
    Containment,
    Counterexample,
    Inside,
    Outside,
    compiled,
    contains_pod,
    size_of,
)
from nodeyard.capabilities.affinity.planning.inheritance import EffectivePolicy
from nodeyard.capabilities.affinity.planning.lineage import DeadEnd, Lineage, Owned, OwningRelease, Unknown
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.types import AffinityClass, Enforcement
from nodeyard.kube.names import NAMESPACE
from nodeyard.kube.node_affinity import NodeSelector, node_matcher
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.message import Message


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
        """Return the names of the classes of releases and applications in the subject's namespace.

        Where not all applications are known, return also the classes that they may choose.
        """

    def namespace_labels(self) -> Mapping[str, str]: ...

    def nodes(self) -> Iterable[ObjectMeta]: ...

    def node(self, name: str) -> ObjectMeta | None: ...

    def policy(self) -> EffectivePolicy:
        """Return the effective policy of the subject's namespace."""


class Placement(NamedTuple):
    decision: Decision
    message: Message
    affinity_class: str = ""
    """The class that it was checked against; empty if there is none."""
    warnings: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        return self.message.reason

    @property
    def violation(self) -> str:
        """Return the text of the violation; empty if there is none."""
        return "" if self.is_inside else self.message.text()

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
    placements = [_place_release(subject, each, context) for each in lineage.owning_releases]
    if lineage.obstacle is not None:
        placements.append(_place_unknown(subject, lineage.obstacle, context))
    worst = _strictest(placements)
    if len(placements) == 1:
        return worst
    warnings = dict.fromkeys(warning for each in placements for warning in each.warnings)
    if len(lineage.owning_releases) > 1:
        releases = [f"{each.release.ref.name} ({_application(each)})" for each in lineage.owning_releases]
        warnings[OwnersAmbiguous(subject=subject.what, releases=releases).text()] = None
    return worst._replace(warnings=tuple(warnings))


def _strictest(placements: Sequence[Placement]) -> Placement:
    """Return the strictest placement; among equals, one with a class."""
    return max(placements, key=lambda each: (_SEVERITIES.index(each.decision), bool(each.affinity_class)))


def _place_release(subject: Subject, owner: OwningRelease, context: PlacementContext) -> Placement:
    name = owner.affinity_class
    if not name:
        return _place_classless(subject, owner, context)
    if owner.record is None and (refused := _refuse_unrecorded(subject, owner, context.policy())) is not None:
        return refused
    placement = _check_class(subject, name, context)
    if placement.is_inside:
        return placement
    for previous in owner.previous:
        if _fits_previous(subject, previous, owner, context):
            message = InsidePreviousClass(
                subject=subject.what,
                affinity_class=name,
                previous=previous,
                application=_application(owner),
                release=owner.release.ref.name,
            )
            return Placement(Decision.ALLOWED, message, previous)
    return placement


def _refuse_unrecorded(subject: Subject, owner: OwningRelease, policy: EffectivePolicy) -> Placement | None:
    """Deny a class that is only a label of the release, unless the tenant allows it."""
    name = owner.affinity_class
    if policy.allowed is None or name in policy.allowed:
        return None
    message = ReleaseClassNotAllowed(
        subject=subject.what,
        affinity_class=name,
        application=_application(owner),
        release=owner.release.ref.name,
        tenant=_tenant(policy),
        allowed=policy.allowed,
    )
    return Placement(Decision.DENIED, message, name)


def _place_classless(subject: Subject, owner: OwningRelease, context: PlacementContext) -> Placement:
    """Apply the tenant's rule for unowned pods and, without a record, the rule that every application has a class."""
    policy, what, application = context.policy(), subject.what, _application(owner)
    if not policy.holds_unowned and (owner.record is not None or not policy.needs_class):
        return Placement(Decision.ALLOWED, ApplicationWithoutClass(subject=what, application=application))

    def refuse(tenant: str, allowed: Sequence[str]) -> Message:
        if owner.record is not None:
            return ClasslessRefused(subject=what, tenant=tenant, allowed=allowed, application=application)
        release = owner.release.ref.name
        return UnbackedRefused(subject=what, tenant=tenant, allowed=allowed, application=application, release=release)

    return _within_allowed(subject, context, refuse)


def _fits_previous(subject: Subject, previous: str, owner: OwningRelease, context: PlacementContext) -> bool:
    if previous:
        return _is_inside(subject, previous, context)
    return _place_classless(subject, owner, context).is_inside


def _application(owner: OwningRelease) -> str:
    return f"{owner.application.kind} {owner.application.name}"


def _tenant(policy: EffectivePolicy) -> str:
    return "" if policy.tenant is None else policy.tenant.name


def _check_class(subject: Subject, name: str, context: PlacementContext) -> Placement:
    what, affinity_class = subject.what, context.affinity_class(name)
    if affinity_class is None:
        return Placement(Decision.DENIED, PodClassMissing(affinity_class=name), name)
    containment = _check_containment(subject, affinity_class, context)
    decision = _DECISIONS[enforcement_of(affinity_class, context.namespace_labels())]
    if isinstance(containment, Inside):
        if not _is_bound_inside(subject, affinity_class, context):
            node, is_known = subject.node_name, context.node(subject.node_name) is not None
            outside = NodeNameOutsideClass(subject=what, affinity_class=name, node=node, is_known=is_known)
            return _violation(decision, outside, name)
        if not containment.is_vacuous:
            return Placement(Decision.ALLOWED, InsideClass(subject=what, affinity_class=name), name)
        message = Unsatisfiable(subject=what)
        return Placement(Decision.ALLOWED, message, name, (message.text(),))
    if not isinstance(containment, Outside):
        return _violation(decision, TooComplex(subject=what, affinity_class=name), name)
    node = _reachable_node(subject, affinity_class, context)
    if containment.missing is None:
        example = _describe(containment.counterexample)
        return _violation(decision, OutsideClass(subject=what, affinity_class=name, example=example, node=node), name)
    key, value = containment.missing
    missing = MissingNodeSelector(
        subject=what, affinity_class=name, key=key, value=value, has=subject.node_selector.get(key), node=node
    )
    return _violation(decision, missing, name)


def _reachable_node(subject: Subject, affinity_class: AffinityClass, context: PlacementContext) -> str:
    """Return a node outside the class that the pod could run on, if one is among the first nodes."""
    if subject.node_name:
        return subject.node_name
    if subject.required is not None and size_of(subject.required) > _MAX_NODES_TRIED:
        return ""
    made, goes_to = compiled(affinity_class), node_matcher(subject.node_selector, subject.required)
    for node in islice(context.nodes(), _MAX_NODES_TRIED):
        if goes_to(node.labels, node.name) and not made.matches(node.labels, node.name):
            return node.name
    return ""


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


def _check_containment(subject: Subject, affinity_class: AffinityClass, context: PlacementContext) -> Containment:
    node = context.node(subject.node) if subject.node else None
    return contains_pod(compiled(affinity_class), subject.node_selector, subject.required, node)


def _describe(example: Counterexample) -> str:
    parts = [f"{key}={value}" if value is not None else f"no label {key}" for key, value in example.labels.items()]
    if example.node_name is not None:
        parts.append(f"the name {example.node_name}")
    return ", ".join(parts) or "any labels"


def _violation(decision: Decision, message: Message, name: str) -> Placement:
    return Placement(decision, message, name, (message.text(),) if decision is Decision.WARNED else ())


# pods of no application


def _place_unowned(subject: Subject, context: PlacementContext) -> Placement:
    policy, what = context.policy(), subject.what
    if policy.tenant is None or not policy.holds_unowned:
        return Placement(Decision.ALLOWED, UnownedAllowed(subject=what))
    return _within_allowed(
        subject, context, lambda tenant, allowed: UnownedRefused(subject=what, tenant=tenant, allowed=allowed)
    )


def _within_allowed(
    subject: Subject, context: PlacementContext, refuse: Callable[[str, Sequence[str]], Message]
) -> Placement:
    """Allow the pod if it is inside one of the allowed classes; otherwise deny it.

    `refuse` makes the message from the tenant's name and the classes.
    """
    policy = context.policy()
    allowed = sorted(context.classes()) if policy.allowed is None else policy.allowed
    for name in allowed:
        if _is_inside(subject, name, context):
            return Placement(Decision.ALLOWED, InsideClass(subject=subject.what, affinity_class=name), name)
    return Placement(Decision.DENIED, refuse(_tenant(policy), allowed))


# pods of an unknown application


def _place_unknown(subject: Subject, obstacle: DeadEnd, context: PlacementContext) -> Placement:
    """Check the pod against all classes of its namespace, since a release is in the namespace of what it installs.

    The pod may also belong to no application, so the tenant's rule for unowned pods counts as well.
    """
    what, owner, error = subject.what, str(obstacle.ref), obstacle.detail
    is_forbidden = obstacle.reason is Reason.OWNER_FORBIDDEN
    could_be = [_check_class(subject, name, context) for name in sorted(set(context.classes_here()))]
    worst = _strictest((*could_be, _place_unowned(subject, context)))
    if worst.is_inside:
        harmless = OwnerForbiddenButHarmless if is_forbidden else OwnerUnknownButHarmless
        message = harmless(subject=what, owner=owner, error=error)
        return Placement(Decision.ALLOWED, message, warnings=(message.text(),))
    unknown = OwnerForbidden if is_forbidden else OwnerUnknown
    name = worst.affinity_class
    return _violation(worst.decision, unknown(subject=what, owner=owner, error=error, affinity_class=name), name)
