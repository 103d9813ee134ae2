"""Tenants before they are stored: what they are called, where they live, and which classes they name.

Denied is what could never be in effect: a class that the parent does not allow, a default that is not allowed. A class
that does not exist yet is only warned about, so that manifests may come in any order. What was wrong before a change is
let through with a warning: the parent may have withdrawn a class meanwhile, and the tenant must still be changeable. A
tenant with tenants or applications in it is not deleted. Those of a platform that serves tenants itself are its own
matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.collecting import application_kinds, applications, is_served_elsewhere
from nodeyard.capabilities.affinity.messages import text
from nodeyard.capabilities.affinity.planning.inheritance import named_classes, standings
from nodeyard.capabilities.affinity.planning.naming import (
    is_top,
    is_well_named,
    lineage,
    name_faults,
    parent_of,
    tenant_facts,
    tenant_ref,
)
from nodeyard.capabilities.affinity.planning.values import host_faults
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import Fault, Standing
from nodeyard.capabilities.affinity.types import Tenant
from nodeyard.runtime.capability import View
from nodeyard.runtime.judging import decoded, judged
from nodeyard.runtime.webhooks import Found, Lookup, Missing, Review, Verdict, allowed, denied

_NAMESPACE_CONTROLLER: Final = "system:serviceaccount:kube-system:namespace-controller"
"""Deletes everything in a namespace that goes; what is in use is then kept by the finalizer."""


def review(review: Review, view: View) -> Verdict | Lookup:
    new, old = (decoded(each, Tenant) for each in (review.object, review.old_object))
    if review.operation == "DELETE":
        is_whole = review.user.username == _NAMESPACE_CONTROLLER
        return allowed() if old is None or is_whole else _review_removal(old, view)
    if new is None or new.is_deleting or not new.name or is_served_elsewhere(view):
        return allowed()
    return _review_creation(new, review, view) if old is None else _review_change(new, old, view)


def _review_creation(new: Tenant, review: Review, view: View) -> Verdict | Lookup:
    if faults := name_faults(new.namespace, new.name):
        return judged([text(Reason.BAD_NAME, tenant_facts(new, errors=faults))], [])
    doubt = "" if is_top(new) else _parent_doubt(new, review, view)
    if not isinstance(doubt, str):
        return doubt
    judgement = _judge(new, view)
    if doubt:
        # Whoever reads the parent later, the plan, knows what it allows.
        return judged(judgement.host, [], [doubt, *judgement.warnings])
    return judged([*judgement.host, *_sentences(judgement.faults)], [], judgement.warnings)


def _review_change(new: Tenant, old: Tenant, view: View) -> Verdict:
    """Names are not looked at again: they cannot change."""
    after, before = _judge(new, view), _judge(old, view)
    known = {_about(each) for each in before.faults}
    fresh = [each for each in after.faults if _about(each) not in known]
    standing = [each for each in after.faults if _about(each) in known]
    host_fresh, host_standing = (after.host, []) if new.spec.host != old.spec.host else ([], after.host)
    warnings = () if named_classes(new) == named_classes(old) else after.warnings
    return judged(
        [*host_fresh, *_sentences(fresh)],
        [*host_standing, *_sentences(standing)],
        [*warnings, *_narrowed(new, old, view)],
    )


# what is wrong with it


@dataclass(frozen=True)
class _Judgement:
    faults: Sequence[Fault]
    """One for each class."""
    host: list[str]
    warnings: Sequence[str]


def _judge(tenant: Tenant, view: View) -> _Judgement:
    exist = frozenset(each for each in named_classes(tenant) if view.get(names.CLASS_KIND, each) is not None)
    branch = [tenant, *_ancestors(tenant, view)]
    standing = standings(branch, exist).get(tenant.own_namespace, Standing())
    missing = [text(each.reason, each.facts) for each in standing.faults if each.reason is Reason.CLASS_MISSING]
    return _Judgement(list(_refusals(standing)), _host_errors(tenant), missing)


def _refusals(standing: Standing) -> Iterator[Fault]:
    """What is not only missing, class by class."""
    for fault in standing.faults:
        if fault.reason is Reason.NOT_IN_PARENT:
            yield from (Fault(fault.reason, {**fault.facts, "classes": [each]}) for each in fault.facts["classes"])
        elif fault.reason is not Reason.CLASS_MISSING:
            yield fault


def _about(fault: Fault) -> tuple[Reason, str]:
    """What a fault is about, whatever else is said about it."""
    classes = fault.facts.get("classes") or [fault.facts.get("default", "")]
    return fault.reason, str(classes[0])


def _sentences(faults: Iterable[Fault]) -> list[str]:
    """Classes that are refused for the same reason stand together."""
    found: dict[Reason, Fault] = {}
    for each in faults:
        known = found.get(each.reason)
        classes = [*(known.facts.get("classes", ()) if known else ()), *each.facts.get("classes", ())]
        found[each.reason] = Fault(each.reason, {**each.facts, "classes": classes})
    return [text(each.reason, each.facts) for each in found.values()]


def _host_errors(tenant: Tenant) -> list[str]:
    host = tenant.spec.host
    errors = host_faults(host)
    return [text(Reason.BAD_HOST, tenant_facts(tenant, host=host, errors=errors, is_own=True))] if errors else []


# the tree around it


def _ancestors(tenant: Tenant, view: View) -> Iterator[Tenant]:
    for namespace in lineage(tenant.namespace):
        place, name = parent_of(namespace)
        found: Tenant | None = view.get(names.TENANT_KIND, name, place)
        if found is not None and found.own_namespace != tenant.own_namespace:
            yield found


def _parent_doubt(new: Tenant, review: Review, view: View) -> str | Verdict | Lookup:
    """Nothing where its parent is known; a warning where it cannot be; a refusal where there is none."""
    if new.namespace == names.TENANT_ROOT:
        return ""
    place, name = parent_of(new.namespace)
    found: Tenant | None = view.get(names.TENANT_KIND, name, place)
    parent = msgspec.convert({"metadata": {"name": name, "namespace": place}}, Tenant) if found is None else found
    if parent.is_deleting:
        return denied(text(Reason.DELETING, tenant_facts(parent)))
    if found is not None:
        return ""
    # A cache may be behind: the parent can be as young as its child.
    match review.answers.get(tenant_ref(parent)):
        case None:
            return Lookup((tenant_ref(parent),))
        case Missing():
            return denied(text(Reason.PARENT_MISSING, tenant_facts(new, missing=new.namespace)))
        case Found():
            return f"the parent of {names.TENANT_KIND} {new.name} is too new to tell which classes it allows"
        case unreadable:
            return f"the parent of {names.TENANT_KIND} {new.name} cannot be read: {unreadable.reason}"


def _children(tenant: Tenant, view: View) -> list[Tenant]:
    here = tenant.own_namespace
    return [each for each in view.all(names.TENANT_KIND) if each.namespace == here and not is_top(each)]


def _narrowed(new: Tenant, old: Tenant, view: View) -> Iterator[str]:
    """The tenants below that lose a class by this change."""
    if (new.spec.allowed_affinity_classes, new.spec.default_affinity_class) == (
        old.spec.allowed_affinity_classes,
        old.spec.default_affinity_class,
    ):
        return
    children, above = _children(new, view), list(_ancestors(new, view))
    after, before = (standings([each, *above, *children], frozenset()) for each in (new, old))
    for child in filter(is_well_named, children):
        known = {_about(each) for each in _refusals(before[child.own_namespace])}
        news = [each for each in _refusals(after[child.own_namespace]) if _about(each) not in known]
        yield from (f"by this change: {each}" for each in _sentences(news))


# deletion


def _review_removal(old: Tenant, view: View) -> Verdict:
    # One that has no finalizer is not in our care: a platform that serves tenants itself has its own rules.
    if names.TENANT_FINALIZER not in old.metadata.finalizers or old.is_deleting:
        return allowed()
    children = sorted(each.name for each in _children(old, view))
    users = sorted(
        f"{kind} {each['metadata']['name']}"
        for kind in application_kinds(view)
        for each in applications(view, kind, old.own_namespace)
    )
    if not children and not users:
        return allowed()
    facts = tenant_facts(old, children=children, applications=len(users), users=users)
    return denied(text(Reason.TENANT_IN_USE, facts))
