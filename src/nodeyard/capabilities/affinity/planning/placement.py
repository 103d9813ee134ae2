"""May this pod be? What its application's class says about where it may go, or its tenant about pods of nobody.

    of an application with a class     every node it may go to has to be in the class; in that of before too, where the
                                       application is just changing its class
    of an application without one      it may go anywhere
    of no application                  as its tenant has it: anywhere, or within at least one of the allowed classes
    nobody can tell                    it must fit every class that it could turn out to have

How hard a class is meant is its own word, `enforcement`, which a namespace may weaken where the class permits it. Of a
class that is not there nothing is known, and so it is refused. A template is judged like the pods it makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.compiled import compiled
from nodeyard.capabilities.affinity.planning.containment import Counterexample, Inside, Outside, Verdict
from nodeyard.capabilities.affinity.planning.daemons import contains_pod
from nodeyard.capabilities.affinity.planning.lineage import Lineage, Owned, Unknown
from nodeyard.capabilities.affinity.planning.previous import previous_classes
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.sentences.placement import sentence
from nodeyard.capabilities.affinity.snapshot import Standing
from nodeyard.capabilities.affinity.types import AffinityClass, Enforcement
from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE
from nodeyard.kube.node_affinity import NodeSelector
from nodeyard.kube.objects import ObjectMeta


class Decision(StrEnum):
    """Also the label of a metric."""

    ALLOWED = "allowed"
    WARNED = "warned"
    AUDITED = "audited"
    DENIED = "denied"


class Subject(NamedTuple):
    """What is to be placed."""

    what: str
    """As it is called in sentences: `pod tenant-acme/main-db-1`."""
    namespace: str
    node_selector: Mapping[str, str]
    required: NodeSelector | None = None
    node: str = ""
    """The one that a DaemonSet has made it for."""


class Surroundings(Protocol):
    """What is known beside the pod; asked only as far as it matters."""

    def affinity_class(self, name: str) -> AffinityClass | None: ...

    def classes(self) -> Iterable[str]:
        """All there are, by name."""

    def classes_here(self) -> Iterable[str]:
        """Those that releases in the subject's namespace have, by name."""

    def namespace_labels(self) -> Mapping[str, str]: ...

    def node(self, name: str) -> ObjectMeta | None: ...

    def standing(self) -> Standing:
        """Of the subject's namespace."""


class Placement(NamedTuple):
    decision: Decision
    reason: Reason
    facts: Object
    affinity_class: str = ""
    """The class by which it was judged; empty where there is none."""
    message: str = ""
    """What is wrong, where something is."""
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
_HARDNESS: Final = (Decision.ALLOWED, *(_DECISIONS[each] for each in _STRICTNESS))


def place(subject: Subject, lineage: Lineage, around: Surroundings) -> Placement:
    if isinstance(lineage, Owned):
        placement = _place_owned(subject, lineage, around)
        return _ambiguous(placement, subject, lineage) if lineage.others else placement
    if isinstance(lineage, Unknown):
        return _place_unknown(subject, lineage, around)
    return _place_unowned(subject, around)


def is_exempt(namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether pods of a namespace are never looked at; the webhooks leave out the same ones."""
    is_system = namespace in names.EXEMPT_NAMESPACES or namespace == NAMESPACE
    return is_system or labels.get(names.SYSTEM_NAMESPACE) == names.TRUE


# of an application


def _place_owned(subject: Subject, lineage: Owned, around: Surroundings) -> Placement:
    labels = lineage.release.metadata.labels
    name = labels.get(names.AFFINITY_CLASS, "")
    facts: Object = {"subject": subject.what, "class": name, **_named(lineage)}
    if not name:
        return Placement(Decision.ALLOWED, Reason.UNRESTRICTED, facts)
    judged = _judge(subject, name, facts, around)
    if judged.is_inside:
        return judged
    for previous in previous_classes(labels):
        if _is_inside(subject, previous, around):
            facts = {**facts, "previous": previous}
            return Placement(Decision.ALLOWED, Reason.INSIDE_PREVIOUS, facts, affinity_class=previous)
    return judged


def _named(lineage: Owned) -> Object:
    application = lineage.application
    return {"application": f"{application.kind} {application.name}", "release": lineage.release.ref.name}


def _judge(subject: Subject, name: str, facts: Object, around: Surroundings) -> Placement:
    affinity_class = around.affinity_class(name)
    if affinity_class is None:
        return _violation(Decision.DENIED, Reason.CLASS_MISSING, facts, name)
    verdict = _contained(subject, affinity_class, around)
    if isinstance(verdict, Inside):
        if not verdict.is_vacuous:
            return Placement(Decision.ALLOWED, Reason.INSIDE, facts, affinity_class=name)
        warning = sentence(Reason.UNSATISFIABLE, facts)
        return Placement(Decision.ALLOWED, Reason.UNSATISFIABLE, facts, affinity_class=name, warnings=(warning,))
    decision = _DECISIONS[enforcement_of(affinity_class, around.namespace_labels())]
    if not isinstance(verdict, Outside):
        return _violation(decision, Reason.TOO_COMPLEX, facts, name)
    facts = {**facts, "example": _described(verdict.counterexample)}
    if verdict.missing is None:
        return _violation(decision, Reason.OUTSIDE, facts, name)
    key, value = verdict.missing
    return _violation(decision, Reason.MISSING_SELECTOR, {**facts, "key": key, "value": value}, name)


def enforcement_of(affinity_class: AffinityClass, namespace_labels: Mapping[str, str]) -> Enforcement:
    own = affinity_class.spec.enforcement
    if not affinity_class.spec.allow_namespace_override or names.ENFORCEMENT not in namespace_labels:
        return own
    try:
        wanted = Enforcement(namespace_labels[names.ENFORCEMENT])
    except ValueError:
        return own
    return min(own, wanted, key=_STRICTNESS.index)


def _is_inside(subject: Subject, name: str, around: Surroundings) -> bool:
    """Whether it fits the class of before: every pod fits where there was none."""
    if not name:
        return True
    affinity_class = around.affinity_class(name)
    if affinity_class is None:
        return False
    return isinstance(_contained(subject, affinity_class, around), Inside)


def _contained(subject: Subject, affinity_class: AffinityClass, around: Surroundings) -> Verdict:
    node = around.node(subject.node) if subject.node else None
    return contains_pod(compiled(affinity_class), subject.node_selector, subject.required, node)


def _described(example: Counterexample) -> str:
    said = [f"{key}={value}" if value is not None else f"no label {key}" for key, value in example.labels.items()]
    if example.node_name is not None:
        said.append(f"the name {example.node_name}")
    return ", ".join(said) or "any labels"


def _violation(decision: Decision, reason: Reason, facts: Object, name: str) -> Placement:
    message = sentence(reason, facts)
    warnings = (message,) if decision is Decision.WARNED else ()
    return Placement(decision, reason, facts, name, message, warnings)


def _ambiguous(placement: Placement, subject: Subject, lineage: Owned) -> Placement:
    others = ", ".join(f"{application.kind} {application.name}" for _release, application in lineage.others)
    facts = {"subject": subject.what, **_named(lineage), "others": others}
    return placement._replace(warnings=(*placement.warnings, sentence(Reason.OWNERS_AMBIGUOUS, facts)))


# of nobody


def _place_unowned(subject: Subject, around: Surroundings) -> Placement:
    facts: Object = {"subject": subject.what}
    standing = around.standing()
    if standing.tenant is None or not standing.holds_unowned:
        return Placement(Decision.ALLOWED, Reason.UNOWNED_ALLOWED, facts)
    allowed = sorted(around.classes()) if standing.allowed is None else standing.allowed
    facts = {**facts, "tenant": standing.tenant.name, "allowed": list(allowed)}
    for name in allowed:
        if _is_inside(subject, name, around):
            return Placement(Decision.ALLOWED, Reason.INSIDE, {**facts, "class": name}, affinity_class=name)
    return _violation(Decision.DENIED, Reason.UNOWNED_REFUSED, facts, "")


# of whom is not known


def _place_unknown(subject: Subject, lineage: Unknown, around: Surroundings) -> Placement:
    """By the classes of all releases that it could be of: a release is in the namespace of what it installs. Where it
    could be of nobody too, its tenant's word on those counts as well."""
    obstacle = lineage.obstacle
    facts: Object = {"subject": subject.what, "owner": str(obstacle.ref), "error": obstacle.detail}
    could_be = [
        _judge(subject, name, {"subject": subject.what, "class": name}, around)
        for name in sorted(set(around.classes_here()))
    ]
    # The hardest counts: that one class only warns excuses nothing that another refuses.
    worst = max((*could_be, _place_unowned(subject, around)), key=lambda each: _HARDNESS.index(each.decision))
    if worst.is_inside:
        warning = sentence(Reason.OWNER_HARMLESS, facts)
        return Placement(Decision.ALLOWED, obstacle.reason, facts, warnings=(warning,))
    name = worst.affinity_class
    return _violation(worst.decision, obstacle.reason, {**facts, "class": name} if name else facts, name)
