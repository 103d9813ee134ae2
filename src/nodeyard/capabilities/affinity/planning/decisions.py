"""Explain a pod, an application, a tenant or a class: the steps that lead to the decision.

pod            tenant ─ owners ─ release ─ class ─ decision, and every dead end among the owners
application    tenant ─ class and its source ─ release
tenant         its effective policy, and that of each tenant above it
class          its nodes, users and pods outside it
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.applications import (
    AllowClassInTenant,
    ChooseAllowedClass,
    ChosenByApplication,
    ClassMissing,
    ClassNotAllowed,
    ClassRequired,
    ClassWithdrawn,
    CreateClass,
    DefaultUnusable,
    KeptFromDefault,
    TenantDefault,
)
from nodeyard.capabilities.affinity.messages.classes import (
    InvalidSelector,
    LabelNodes,
    NodesMatch,
    NoNodeMatches,
    PodsOutside,
)
from nodeyard.capabilities.affinity.messages.definitions import Establishing, Served
from nodeyard.capabilities.affinity.messages.objects import (
    ClassRequires,
    Deleting,
    EndPause,
    InstalledBy,
    NoTenant,
    OwnedBy,
    Paused,
    ReleaseOf,
    TenantPolicy,
    UsesClass,
)
from nodeyard.capabilities.affinity.messages.pods import (
    ApplySchedulingInChart,
    GrantRead,
    MissingNodeSelector,
    NamespaceExempt,
    NodeNameOutsideClass,
    OutsideClass,
    OwnerCycle,
    OwnerMissing,
    OwnerReplaced,
    OwnerUnknown,
    OwnerUnknownButHarmless,
    OwnerUnread,
    OwnerUnreadForbidden,
    PodClassMissing,
    TooComplex,
)
from nodeyard.capabilities.affinity.messages.tenants import NamespaceDeleted, NamespacePending, TenantReady
from nodeyard.capabilities.affinity.planning.choice import READY, choose, release_condition
from nodeyard.capabilities.affinity.planning.class_record import Record, format_previous, stored_record
from nodeyard.capabilities.affinity.planning.classes import selector_errors
from nodeyard.capabilities.affinity.planning.containment import terms_of
from nodeyard.capabilities.affinity.planning.definitions import crd_name
from nodeyard.capabilities.affinity.planning.inheritance import EffectivePolicy, effective_policies, lineage
from nodeyard.capabilities.affinity.planning.lineage import DeadEnd, Owned, OwningRelease, Step
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import (
    ApplicationSnapshot,
    ClassSnapshot,
    DefinitionSnapshot,
    PodSnapshot,
    Snapshot,
    TenantsSnapshot,
)
from nodeyard.capabilities.affinity.types import AffinityClass, Tenant
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.message import Message
from nodeyard.plan.model import Candidate, Decision, ObjectRef


def decide(ref: ObjectRef, snapshot: Snapshot, builder: PlanBuilder) -> Decision | None:
    """Return the decision about an object; None if the object does not belong to the key."""
    match snapshot:
        case PodSnapshot():
            return _decide_pod(ref, snapshot)
        case ApplicationSnapshot():
            return _decide_application(ref, snapshot, builder)
        case TenantsSnapshot():
            return _decide_tenant(ref, snapshot, builder)
        case ClassSnapshot():
            return _decide_class(ref, snapshot, builder)
        case DefinitionSnapshot():
            return _decide_definition(ref, snapshot, builder)


# shared steps


def _step(name: str, message: Message) -> Candidate:
    return Candidate.of(name, message, is_taken=True)


def _tenant_step(policy: EffectivePolicy, namespace: str) -> Candidate:
    if policy.tenant is None:
        return _step(f"Namespace {namespace}", NoTenant(namespace=namespace))
    return _step(str(policy.tenant.ref), TenantPolicy(default=policy.default, allowed=policy.allowed))


def _class_step(affinity_class: AffinityClass) -> Candidate:
    spec = affinity_class.spec
    terms = terms_of(spec)
    message = ClassRequires(
        node_selector=spec.node_selector,
        terms=0 if terms is None else len(terms.node_selector_terms),
        enforcement=spec.enforcement.value,
    )
    return _step(str(affinity_class.ref), message)


def _release_of(application: str, record: Record | None, labels: Mapping[str, str], failure: str = "") -> ReleaseOf:
    """Return the message of a release, with the recorded class, or the one in its label if there is no record."""
    return ReleaseOf(
        application=application,
        affinity_class=labels.get(names.AFFINITY_CLASS, "") if record is None else record.affinity_class,
        is_recorded=record is not None,
        previous=format_previous(record.previous) if record is not None and record.previous else None,
        failure=failure,
    )


# pods


def _decide_pod(ref: ObjectRef, snapshot: PodSnapshot) -> Decision | None:
    if (ref.kind, ref.namespace, ref.name) != (snapshot.ref.kind, snapshot.ref.namespace, snapshot.ref.name):
        return None
    rule = NamespaceExempt(namespace=ref.namespace) if snapshot.is_exempt else snapshot.placement.message
    return Decision.of(ref, rule, _pod_steps(snapshot), _pod_remedies(rule, snapshot.policy))


def _pod_remedies(rule: Message, policy: EffectivePolicy) -> Iterator[Message]:
    match rule:
        case MissingNodeSelector() | OutsideClass() | TooComplex() | NodeNameOutsideClass():
            yield ApplySchedulingInChart()
        case OwnerUnknown() | OwnerUnknownButHarmless():
            yield GrantRead()
        case PodClassMissing():
            yield CreateClass(affinity_class=rule.affinity_class)
            yield _choose_allowed(policy, rule.affinity_class)


def _choose_allowed(policy: EffectivePolicy, present: str = "") -> ChooseAllowedClass:
    """Return the remedy to choose another class than the present one."""
    others = None if policy.allowed is None else tuple(each for each in policy.allowed if each != present)
    return ChooseAllowedClass(tenant="" if policy.tenant is None else policy.tenant.name, allowed=others)


def _pod_steps(snapshot: PodSnapshot) -> Iterator[Candidate]:
    yield _tenant_step(snapshot.policy, snapshot.ref.namespace)
    lineage = snapshot.lineage
    if isinstance(lineage, Owned):
        yield from (_owner_step(each) for each in lineage.path[1:-1])
        if len(lineage.path) > 1:
            yield from map(_release_step, lineage.owning_releases)
    if snapshot.affinity_class is not None:
        yield _class_step(snapshot.affinity_class)
    yield from (Candidate.of(str(each.ref), _dead_end(each)) for each in lineage.dead_ends)


def _release_step(owner: OwningRelease) -> Candidate:
    application, release = f"{owner.application.kind} {owner.application.name}", owner.release
    return _step(str(release.ref), _release_of(application, owner.record, release.metadata.labels))


def _owner_step(step: Step) -> Candidate:
    below = str(step.below.ref) if step.below else ""
    return _step(str(step.ref), InstalledBy(below=below) if step.is_labelled else OwnedBy(below=below))


def _dead_end(end: DeadEnd) -> Message:
    owner = str(end.ref)
    match end.reason:
        case Reason.OWNER_MISSING:
            return OwnerMissing(owner=owner)
        case Reason.OWNER_REPLACED:
            return OwnerReplaced(owner=owner)
        case Reason.OWNER_CYCLE:
            return OwnerCycle(owner=owner)
        case Reason.OWNER_FORBIDDEN:
            return OwnerUnreadForbidden(owner=owner, error=end.detail)
        case _:
            return OwnerUnread(owner=owner, error=end.detail)


# applications


def _decide_application(ref: ObjectRef, snapshot: ApplicationSnapshot, builder: PlanBuilder) -> Decision | None:
    application, release = snapshot.application, snapshot.release
    metadata = application["metadata"]
    release_name = "" if release is None else release["metadata"]["name"]
    is_meant = (ref.kind, ref.name) in ((application["kind"], metadata["name"]), (names.RELEASE_KIND, release_name))
    if not is_meant or ref.namespace != metadata["namespace"]:
        return None
    choice = choose(snapshot)
    rule: Message = builder.blocked[0].facts if builder.blocked else choice.message
    remedies = _application_remedies(rule, snapshot.policy)
    return Decision.of(ref, rule, _application_steps(snapshot, choice.name), remedies)


def _application_remedies(rule: Message, policy: EffectivePolicy) -> Iterator[Message]:
    match rule:
        case ClassMissing():
            yield CreateClass(affinity_class=rule.affinity_class)
            yield _choose_allowed(policy, rule.affinity_class)
        case ClassNotAllowed() | ClassWithdrawn():
            yield _choose_allowed(policy)
            if name := rule.affinity_class:
                yield AllowClassInTenant(affinity_class=name, allow_in=rule.allow_in or (rule.tenant,))
        case ClassRequired() | DefaultUnusable():
            yield _choose_allowed(policy)
        case ChosenByApplication() | KeptFromDefault() | TenantDefault():
            yield _choose_allowed(policy, rule.affinity_class)


def _application_steps(snapshot: ApplicationSnapshot, chosen: str) -> Iterator[Candidate]:
    yield _tenant_step(snapshot.policy, snapshot.application["metadata"]["namespace"])
    affinity_class = snapshot.classes.get(chosen)
    if affinity_class is not None:
        yield _class_step(affinity_class)
    release = snapshot.release
    if release is not None:
        name = f"{names.RELEASE_KIND} {release['metadata']['namespace']}/{release['metadata']['name']}"
        labels = release["metadata"].get("labels") or {}
        application = f"{labels.get(names.APPLICATION_KIND, '')} {labels.get(names.APPLICATION_NAME, '')}".strip()
        ready = release_condition(release, READY) or {}
        failure = f"{ready.get('reason', '')}: {ready.get('message', '')}" if ready.get("status") == "False" else ""
        record = stored_record(snapshot.application)
        yield _step(name, _release_of(application or "no application", record, labels, failure))


# tenants


def _decide_tenant(ref: ObjectRef, snapshot: TenantsSnapshot, builder: PlanBuilder) -> Decision | None:
    tenant = next((each for each in snapshot.tenants if _refers_to(ref, each)), None)
    if tenant is None:
        return None
    meant = ObjectRef(api_version=ref.api_version, kind=names.TENANT_KIND, namespace=tenant.namespace, name=tenant.name)
    about = (
        each
        for each in builder.blocked
        if (each.object.kind, each.object.namespace, each.object.name) == (meant.kind, meant.namespace, meant.name)
    )
    refusal = next(about, None)
    rule = _tenant_rule(tenant, snapshot, builder) if refusal is None else refusal.facts
    tree = effective_policies(snapshot.tenants, snapshot.classes)
    chain = [tree.get(namespace, EffectivePolicy()) for namespace in lineage(tenant.own_namespace)]
    steps = [_tenant_step(each, "") for each in chain if each.tenant is not None]
    return Decision.of(ref, rule, steps, [EndPause()] if isinstance(rule, Paused) else [])


def _tenant_rule(tenant: Tenant, snapshot: TenantsSnapshot, builder: PlanBuilder) -> Message:
    """Return the message for a tenant without refusals: deleting, waiting for its Namespace, or ready."""
    for action in builder.actions:
        if isinstance(action.facts, NamespaceDeleted) and action.facts.object == tenant.ref:
            return action.facts
    if tenant.is_deleting:
        return Deleting(object=tenant.ref)
    is_there = tenant.own_namespace in snapshot.namespaces
    return TenantReady(object=tenant.ref) if is_there else NamespacePending(object=tenant.ref)


def _refers_to(ref: ObjectRef, tenant: Tenant) -> bool:
    """Return whether the reference is to the tenant or its namespace."""
    if ref.kind == "Namespace":
        return ref.name == tenant.own_namespace
    return (ref.kind, ref.namespace, ref.name) == (names.TENANT_KIND, tenant.namespace, tenant.name)


# classes and definitions


def _decide_class(ref: ObjectRef, snapshot: ClassSnapshot, builder: PlanBuilder) -> Decision | None:
    affinity_class = snapshot.affinity_class
    if (ref.kind, ref.name) != (names.CLASS_KIND, affinity_class.name):
        return None
    refusal = next((each for each in builder.blocked if each.reason != Reason.SERVED_BY_API_SERVICE), None)
    rule: Message = NodesMatch(zones=snapshot.zones) if any(snapshot.zones.values()) else NoNodeMatches()
    if refusal is not None:
        rule = refusal.facts
    elif errors := selector_errors(affinity_class.spec):
        rule = InvalidSelector(errors=errors)
    return Decision.of(ref, rule, _class_steps(snapshot), [LabelNodes()] if isinstance(rule, NoNodeMatches) else [])


def _class_steps(snapshot: ClassSnapshot) -> Iterator[Candidate]:
    name = snapshot.affinity_class.name
    yield _class_step(snapshot.affinity_class)
    for user in snapshot.users:
        yield _step(f"{user.kind} {user.namespace}/{user.name}", UsesClass(affinity_class=name))
    for pod in snapshot.violators:
        yield Candidate.of(f"Pod {pod}", PodsOutside(affinity_class=name, pods=[pod], count=1))


def _decide_definition(ref: ObjectRef, snapshot: DefinitionSnapshot, builder: PlanBuilder) -> Decision | None:
    if (ref.kind, ref.name) != (names.DEFINITION_KIND, snapshot.definition.name):
        return None
    if builder.blocked:
        return Decision.of(ref, builder.blocked[0].facts)
    definition = snapshot.definition
    conditions = ((snapshot.crd or {}).get("status") or {}).get("conditions") or ()
    if any((each.get("type"), each.get("status")) == ("Established", "True") for each in conditions):
        return Decision.of(ref, Served(kind=definition.kind))
    return Decision.of(ref, Establishing(crd=crd_name(definition)))
