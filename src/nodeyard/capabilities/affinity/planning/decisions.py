"""Why a pod, an application, a tenant or a class is as it is: the whole way to the verdict, step by step.

pod            tenant ─ owners ─ release ─ class ─ verdict, and every owner that led nowhere
application    tenant ─ class and who chose it ─ release
tenant         what it has in effect, and what each tenant above it says
class          its nodes, who uses it, whose pods are outside
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.choice import choose
from nodeyard.capabilities.affinity.planning.compiled import terms_of
from nodeyard.capabilities.affinity.planning.definitions import definition_facts
from nodeyard.capabilities.affinity.planning.inheritance import standings
from nodeyard.capabilities.affinity.planning.lineage import Owned, Step
from nodeyard.capabilities.affinity.planning.naming import lineage, tenant_facts
from nodeyard.capabilities.affinity.planning.previous import previous_classes, shown
from nodeyard.capabilities.affinity.pods import PodSnapshot
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import (
    ApplicationSnapshot,
    ClassSnapshot,
    DefinitionSnapshot,
    Standing,
    TenantsSnapshot,
)
from nodeyard.capabilities.affinity.types import AffinityClass, Tenant
from nodeyard.kube.json import Object
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import Candidate, Decision, ObjectRef

_CHANGES: Final[Mapping[str, tuple[Reason, ...]]] = {
    Reason.MISSING_SELECTOR: (Reason.MEND_CHART,),
    Reason.OUTSIDE: (Reason.MEND_CHART,),
    Reason.TOO_COMPLEX: (Reason.MEND_CHART,),
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


def decide(ref: ObjectRef, snapshot: _Snapshot, draft: Draft) -> Decision | None:
    """None where the object has nothing to do with the key."""
    match snapshot:
        case PodSnapshot():
            return _of_pod(ref, snapshot)
        case ApplicationSnapshot():
            return _of_application(ref, snapshot, draft)
        case TenantsSnapshot():
            return _of_tenant(ref, snapshot, draft)
        case ClassSnapshot():
            return _of_class(ref, snapshot, draft)
        case DefinitionSnapshot():
            return _of_definition(ref, snapshot, draft)


def _decision(ref: ObjectRef, rule: str, facts: Object, candidates: Iterable[Candidate]) -> Decision:
    changes = tuple(each.value for each in _CHANGES.get(rule, ()))
    return Decision(object=ref, rule=rule, facts=facts, candidates=tuple(candidates), would_change=changes)


def _taken(name: str, reason: Reason, facts: Object) -> Candidate:
    return Candidate(name=name, is_taken=True, reason=reason.value, facts=facts)


# the steps that several have


def _tenant_step(standing: Standing, namespace: str) -> Candidate:
    tenant = standing.tenant
    if tenant is None:
        return _taken(f"Namespace {namespace}", Reason.NO_TENANT, {"namespace": namespace})
    return _taken(_named(tenant), Reason.TENANT_SAYS, _says(standing))


def _named(tenant: Tenant) -> str:
    return f"{names.TENANT_KIND} {tenant.namespace}/{tenant.name}"


def _says(standing: Standing) -> Object:
    return {"default": standing.default, "allowed": None if standing.allowed is None else list(standing.allowed)}


def _class_step(affinity_class: AffinityClass) -> Candidate:
    spec = affinity_class.spec
    terms = terms_of(spec)
    facts: Object = {
        "node_selector": dict(spec.node_selector),
        "terms": 0 if terms is None else len(terms.node_selector_terms),
        "enforcement": spec.enforcement.value,
    }
    return _taken(f"{names.CLASS_KIND} {affinity_class.name}", Reason.CLASS_ASKS, facts)


def _release_step(name: str, labels: Mapping[str, str]) -> Candidate:
    application = f"{labels.get(names.APPLICATION_KIND, '')} {labels.get(names.APPLICATION_NAME, '')}".strip()
    facts: Object = {"application": application or "no application", "class": labels.get(names.AFFINITY_CLASS, "")}
    if previous := previous_classes(labels):
        facts["previous"] = shown(previous)
    return _taken(name, Reason.RELEASE_OF, facts)


# pods


def _of_pod(ref: ObjectRef, snapshot: PodSnapshot) -> Decision | None:
    if (ref.kind, ref.namespace, ref.name) != (snapshot.ref.kind, snapshot.ref.namespace, snapshot.ref.name):
        return None
    placement = snapshot.placement
    rule, facts = placement.reason.value, placement.facts
    if snapshot.is_exempt:
        rule, facts = Reason.EXEMPT.value, {"namespace": ref.namespace}
    return _decision(ref, rule, facts, _pod_steps(snapshot))


def _pod_steps(snapshot: PodSnapshot) -> Iterator[Candidate]:
    yield _tenant_step(snapshot.standing, snapshot.ref.namespace)
    lineage = snapshot.lineage
    if isinstance(lineage, Owned):
        yield from (_owner_step(each) for each in lineage.path[1:-1])
        if len(lineage.path) > 1:
            yield _release_step(str(lineage.release.ref), lineage.release.metadata.labels)
        for release, application in lineage.others:
            facts = {
                "subject": str(snapshot.ref),
                "application": f"{lineage.application.kind} {lineage.application.name}",
            }
            facts["others"] = f"{application.kind} {application.name}"
            reason = Reason.OWNERS_AMBIGUOUS.value
            yield Candidate(name=str(release.ref), is_taken=False, reason=reason, facts=facts)
    if snapshot.affinity_class is not None:
        yield _class_step(snapshot.affinity_class)
    for end in lineage.dead_ends:
        facts = {"subject": str(snapshot.ref), "owner": str(end.ref), "error": end.detail}
        yield Candidate(name=str(end.ref), is_taken=False, reason=end.reason.value, facts=facts)


def _owner_step(step: Step) -> Candidate:
    reason = Reason.INSTALLED_BY if step.is_labelled else Reason.OWNED_BY
    return _taken(str(step.ref), reason, {"below": str(step.below.ref) if step.below else ""})


# applications


def _of_application(ref: ObjectRef, snapshot: ApplicationSnapshot, draft: Draft) -> Decision | None:
    application, release = snapshot.application, snapshot.release
    metadata = application["metadata"]
    release_name = "" if release is None else release["metadata"]["name"]
    is_meant = (ref.kind, ref.name) in ((application["kind"], metadata["name"]), (names.RELEASE_KIND, release_name))
    if not is_meant or ref.namespace != metadata["namespace"]:
        return None
    choice = choose(snapshot)
    refusal = draft.blocked[0] if draft.blocked else None
    rule, facts = (refusal.reason, refusal.facts) if refusal else (choice.reason.value, choice.facts)
    if snapshot.standing.allowed is not None:
        facts = {**facts, "allowed": list(snapshot.standing.allowed)}
    return _decision(ref, rule, facts, _application_steps(snapshot, choice.name))


def _application_steps(snapshot: ApplicationSnapshot, chosen: str) -> Iterator[Candidate]:
    yield _tenant_step(snapshot.standing, snapshot.application["metadata"]["namespace"])
    affinity_class = snapshot.classes.get(chosen)
    if affinity_class is not None:
        yield _class_step(affinity_class)
    release = snapshot.release
    if release is not None:
        name = f"{names.RELEASE_KIND} {release['metadata']['namespace']}/{release['metadata']['name']}"
        yield _release_step(name, release["metadata"].get("labels") or {})


# tenants


def _of_tenant(ref: ObjectRef, snapshot: TenantsSnapshot, draft: Draft) -> Decision | None:
    tenant = next((each for each in snapshot.tenants if _is_meant(ref, each)), None)
    if tenant is None:
        return None
    meant = ObjectRef(api_version=ref.api_version, kind=names.TENANT_KIND, namespace=tenant.namespace, name=tenant.name)
    about = (
        each
        for each in draft.blocked
        if (each.object.kind, each.object.namespace, each.object.name) == (meant.kind, meant.namespace, meant.name)
    )
    refusal = next(about, None)
    rule, facts = (refusal.reason, refusal.facts) if refusal else (Reason.TENANT_READY.value, tenant_facts(tenant))
    tree = standings(snapshot.tenants, snapshot.classes)
    chain = [tree.get(namespace, Standing()) for namespace in lineage(tenant.own_namespace)]
    steps = [_taken(_named(each.tenant), Reason.TENANT_SAYS, _says(each)) for each in chain if each.tenant is not None]
    return _decision(ref, rule, facts, steps)


def _is_meant(ref: ObjectRef, tenant: Tenant) -> bool:
    """A tenant, or its namespace."""
    if ref.kind == "Namespace":
        return ref.name == tenant.own_namespace
    return (ref.kind, ref.namespace, ref.name) == (names.TENANT_KIND, tenant.namespace, tenant.name)


# classes and definitions


def _of_class(ref: ObjectRef, snapshot: ClassSnapshot, draft: Draft) -> Decision | None:
    affinity_class = snapshot.affinity_class
    if (ref.kind, ref.name) != (names.CLASS_KIND, affinity_class.name):
        return None
    nodes = sum(snapshot.zones.values())
    rule = Reason.NODES_MATCH if nodes else Reason.NO_NODE_MATCHES
    facts: Object = {"class": affinity_class.name, "nodes": nodes, "zones": dict(snapshot.zones)}
    refusal = next((each for each in draft.blocked if each.reason != Reason.SERVED_ELSEWHERE), None)
    if refusal is not None:
        return _decision(ref, refusal.reason, refusal.facts, _class_steps(snapshot))
    return _decision(ref, rule.value, facts, _class_steps(snapshot))


def _class_steps(snapshot: ClassSnapshot) -> Iterator[Candidate]:
    name = snapshot.affinity_class.name
    yield _class_step(snapshot.affinity_class)
    for user in snapshot.users:
        yield _taken(f"{user.kind} {user.namespace}/{user.name}", Reason.USES_CLASS, {"class": name})
    for pod in snapshot.violators:
        facts: Object = {"class": name, "count": 1, "pods": [pod]}
        yield Candidate(name=f"Pod {pod}", is_taken=False, reason=Reason.VIOLATED.value, facts=facts)


def _of_definition(ref: ObjectRef, snapshot: DefinitionSnapshot, draft: Draft) -> Decision | None:
    if (ref.kind, ref.name) != (names.DEFINITION_KIND, snapshot.definition.name):
        return None
    if draft.blocked:
        return _decision(ref, draft.blocked[0].reason, draft.blocked[0].facts, ())
    return _decision(ref, Reason.SERVED.value, definition_facts(snapshot.definition), ())
