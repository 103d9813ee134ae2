"""Explain a pod, an application, a tenant or a class: the steps that lead to the decision.

pod            tenant ─ owners ─ release ─ class ─ decision, and every dead end among the owners
application    tenant ─ class and its source ─ release
tenant         its effective policy, and that of each tenant above it
class          its nodes, users and pods outside it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.choice import READY, choose, release_condition
from nodeyard.capabilities.affinity.planning.class_record import Record, format_previous, stored_record
from nodeyard.capabilities.affinity.planning.classes import selector_errors
from nodeyard.capabilities.affinity.planning.compiled_classes import terms_of
from nodeyard.capabilities.affinity.planning.definitions import definition_facts
from nodeyard.capabilities.affinity.planning.inheritance import effective_policies
from nodeyard.capabilities.affinity.planning.lineage import Claim, Owned, Step
from nodeyard.capabilities.affinity.planning.naming import lineage, tenant_facts
from nodeyard.capabilities.affinity.pods import PodSnapshot
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import (
    ApplicationSnapshot,
    ClassSnapshot,
    DefinitionSnapshot,
    EffectivePolicy,
    TenantsSnapshot,
)
from nodeyard.capabilities.affinity.types import AffinityClass, Tenant
from nodeyard.kube.json import Object
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Candidate, Decision, ObjectRef

_CHANGES: Final[Mapping[str, tuple[Reason, ...]]] = {
    Reason.MISSING_SELECTOR: (Reason.MEND_CHART,),
    Reason.OUTSIDE: (Reason.MEND_CHART,),
    Reason.TOO_COMPLEX: (Reason.MEND_CHART,),
    Reason.NODE_OUTSIDE: (Reason.MEND_CHART,),
    Reason.OWNER_FORBIDDEN: (Reason.GRANT_READ,),
    Reason.OWNER_UNKNOWN: (Reason.GRANT_READ,),
    Reason.CLASS_MISSING: (Reason.CREATE_CLASS, Reason.CHOOSE_ALLOWED),
    Reason.CLASS_NOT_ALLOWED: (Reason.CHOOSE_ALLOWED, Reason.ALLOW_CLASS),
    Reason.CLASS_WITHDRAWN: (Reason.CHOOSE_ALLOWED, Reason.ALLOW_CLASS),
    Reason.DEFAULT_NOT_ALLOWED: (Reason.CHOOSE_ALLOWED,),
    Reason.CLASS_EXPLICIT: (Reason.CHOOSE_ALLOWED,),
    Reason.CLASS_STICKY: (Reason.CHOOSE_ALLOWED,),
    Reason.CLASS_DEFAULT: (Reason.CHOOSE_ALLOWED,),
    Reason.NO_NODE_MATCHES: (Reason.LABEL_NODES,),
    Reason.PAUSED: (Reason.END_PAUSE,),
}
_Snapshot = TenantsSnapshot | ApplicationSnapshot | DefinitionSnapshot | ClassSnapshot | PodSnapshot


def decide(ref: ObjectRef, snapshot: _Snapshot, builder: PlanBuilder) -> Decision | None:
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


def _decision(ref: ObjectRef, rule: str, facts: Object, candidates: Iterable[Candidate]) -> Decision:
    changes = tuple(each.value for each in _CHANGES.get(rule, ()))
    return Decision(object=ref, rule=rule, facts=facts, candidates=tuple(candidates), would_change=changes)


def _step(name: str, reason: Reason, facts: Object) -> Candidate:
    return Candidate(name=name, is_taken=True, reason=reason.value, facts=facts)


# shared steps


def _tenant_step(policy: EffectivePolicy, namespace: str) -> Candidate:
    tenant = policy.tenant
    if tenant is None:
        return _step(f"Namespace {namespace}", Reason.NO_TENANT, {"namespace": namespace})
    return _step(_tenant_name(tenant), Reason.TENANT_POLICY, _policy_facts(policy))


def _tenant_name(tenant: Tenant) -> str:
    return f"{names.TENANT_KIND} {tenant.namespace}/{tenant.name}"


def _policy_facts(policy: EffectivePolicy) -> Object:
    return {"default": policy.default, "allowed": None if policy.allowed is None else list(policy.allowed)}


def _class_step(affinity_class: AffinityClass) -> Candidate:
    spec = affinity_class.spec
    terms = terms_of(spec)
    facts: Object = {
        "node_selector": dict(spec.node_selector),
        "terms": 0 if terms is None else len(terms.node_selector_terms),
        "enforcement": spec.enforcement.value,
    }
    return _step(f"{names.CLASS_KIND} {affinity_class.name}", Reason.CLASS_REQUIRES, facts)


def _release_step(name: str, application: str, record: Record | None, labels: Mapping[str, str]) -> Candidate:
    """Return the step of a release, with the recorded class, or the one in its label if there is no record."""
    facts: Object = {"application": application, "recorded": record is not None}
    facts["class"] = labels.get(names.AFFINITY_CLASS, "") if record is None else record.affinity_class
    if record is not None and record.previous:
        facts["previous"] = format_previous(record.previous)
    return _step(name, Reason.RELEASE_OF, facts)


# pods


def _decide_pod(ref: ObjectRef, snapshot: PodSnapshot) -> Decision | None:
    if (ref.kind, ref.namespace, ref.name) != (snapshot.ref.kind, snapshot.ref.namespace, snapshot.ref.name):
        return None
    placement = snapshot.placement
    rule, facts = placement.reason.value, placement.facts
    if snapshot.is_exempt:
        rule, facts = Reason.EXEMPT.value, {"namespace": ref.namespace}
    return _decision(ref, rule, facts, _pod_steps(snapshot))


def _pod_steps(snapshot: PodSnapshot) -> Iterator[Candidate]:
    yield _tenant_step(snapshot.policy, snapshot.ref.namespace)
    lineage = snapshot.lineage
    if isinstance(lineage, Owned):
        yield from (_owner_step(each) for each in lineage.path[1:-1])
        if len(lineage.path) > 1:
            yield from map(_claim_step, lineage.claims)
    if snapshot.affinity_class is not None:
        yield _class_step(snapshot.affinity_class)
    for end in lineage.dead_ends:
        facts = {"subject": str(snapshot.ref), "owner": str(end.ref), "error": end.detail}
        yield Candidate(name=str(end.ref), is_taken=False, reason=end.reason.value, facts=facts)


def _claim_step(claim: Claim) -> Candidate:
    application = f"{claim.application.kind} {claim.application.name}"
    return _release_step(str(claim.release.ref), application, claim.record, claim.release.metadata.labels)


def _owner_step(step: Step) -> Candidate:
    reason = Reason.INSTALLED_BY if step.is_labelled else Reason.OWNED_BY
    return _step(str(step.ref), reason, {"below": str(step.below.ref) if step.below else ""})


# applications


def _decide_application(ref: ObjectRef, snapshot: ApplicationSnapshot, builder: PlanBuilder) -> Decision | None:
    application, release = snapshot.application, snapshot.release
    metadata = application["metadata"]
    release_name = "" if release is None else release["metadata"]["name"]
    is_meant = (ref.kind, ref.name) in ((application["kind"], metadata["name"]), (names.RELEASE_KIND, release_name))
    if not is_meant or ref.namespace != metadata["namespace"]:
        return None
    choice = choose(snapshot)
    refusal = builder.blocked[0] if builder.blocked else None
    rule, facts = (refusal.reason, refusal.facts) if refusal else (choice.reason.value, choice.facts)
    if snapshot.policy.allowed is not None:
        facts = {**facts, "allowed": list(snapshot.policy.allowed)}
    return _decision(ref, rule, facts, _application_steps(snapshot, choice.name))


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
        step = _release_step(name, application or "no application", stored_record(snapshot.application), labels)
        ready = release_condition(release, READY) or {}
        failure = f"{ready.get('reason', '')}: {ready.get('message', '')}" if ready.get("status") == "False" else ""
        yield msgspec.structs.replace(step, facts={**step.facts, "failure": failure}) if failure else step


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
    rule, facts = (refusal.reason, refusal.facts) if refusal else _tenant_rule(tenant, snapshot, builder)
    tree = effective_policies(snapshot.tenants, snapshot.classes)
    chain = [tree.get(namespace, EffectivePolicy()) for namespace in lineage(tenant.own_namespace)]
    steps = [
        _step(_tenant_name(each.tenant), Reason.TENANT_POLICY, _policy_facts(each))
        for each in chain
        if each.tenant is not None
    ]
    return _decision(ref, rule, facts, steps)


def _tenant_rule(tenant: Tenant, snapshot: TenantsSnapshot, builder: PlanBuilder) -> tuple[str, Object]:
    """Return the reason for a tenant without refusals: deleting, waiting for its Namespace, or ready."""
    own, facts = tenant.own_namespace, tenant_facts(tenant)
    for action in builder.actions:
        if (action.object.kind, action.object.name, action.reason) == ("Namespace", own, Reason.NAMESPACE_DELETED):
            return action.reason, action.facts
    if tenant.is_deleting:
        return Reason.DELETING.value, facts
    is_there = own in snapshot.namespaces
    return (Reason.TENANT_READY if is_there else Reason.NAMESPACE_PENDING).value, facts


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
    nodes = sum(snapshot.zones.values())
    rule = Reason.NODES_MATCH if nodes else Reason.NO_NODE_MATCHES
    facts: Object = {"class": affinity_class.name, "nodes": nodes, "zones": dict(snapshot.zones)}
    refusal = next((each for each in builder.blocked if each.reason != Reason.SERVED_ELSEWHERE), None)
    if refusal is not None:
        return _decision(ref, refusal.reason, refusal.facts, _class_steps(snapshot))
    if errors := selector_errors(affinity_class.spec):
        return _decision(ref, Reason.BAD_SELECTOR.value, {"errors": errors}, _class_steps(snapshot))
    return _decision(ref, rule.value, facts, _class_steps(snapshot))


def _class_steps(snapshot: ClassSnapshot) -> Iterator[Candidate]:
    name = snapshot.affinity_class.name
    yield _class_step(snapshot.affinity_class)
    for user in snapshot.users:
        yield _step(f"{user.kind} {user.namespace}/{user.name}", Reason.USES_CLASS, {"class": name})
    for pod in snapshot.violators:
        facts: Object = {"class": name, "count": 1, "pods": [pod]}
        yield Candidate(name=f"Pod {pod}", is_taken=False, reason=Reason.VIOLATED.value, facts=facts)


def _decide_definition(ref: ObjectRef, snapshot: DefinitionSnapshot, builder: PlanBuilder) -> Decision | None:
    if (ref.kind, ref.name) != (names.DEFINITION_KIND, snapshot.definition.name):
        return None
    if builder.blocked:
        return _decision(ref, builder.blocked[0].reason, builder.blocked[0].facts, ())
    conditions = ((snapshot.crd or {}).get("status") or {}).get("conditions") or ()
    is_served = any((each.get("type"), each.get("status")) == ("Established", "True") for each in conditions)
    rule = Reason.SERVED if is_served else Reason.ESTABLISHING
    return _decision(ref, rule.value, definition_facts(snapshot.definition), ())
