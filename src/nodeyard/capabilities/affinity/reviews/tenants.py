"""Review Tenants: name, namespace, host and classes.

Denied are a class that the parent does not allow and a default that is not allowed. A class that does not exist yet
only gets a warning, so that manifests can be applied in any order. Validation of updates is ratcheting: faults from
before the change only get a warning, since the parent may have withdrawn a class. The deletion of a tenant with child
tenants or applications is denied; any other gets a warning that says what is deleted with it. Tenants of a platform
that serves them itself are not reviewed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collect.applications import application_kinds, applications
from nodeyard.capabilities.affinity.collect.owners import is_served_elsewhere
from nodeyard.capabilities.affinity.collect.tenants import left_in
from nodeyard.capabilities.affinity.messages.objects import Deleting
from nodeyard.capabilities.affinity.messages.tenants import (
    BadHost,
    BadTenantName,
    ClassRevoked,
    DefaultNotAllowed,
    NamespaceDeleted,
    NamespaceHeld,
    NotAllowedByParent,
    ParentMissing,
    TenantClassesMissing,
    TenantInUse,
    TenantMessage,
)
from nodeyard.capabilities.affinity.planning.class_record import stored_record
from nodeyard.capabilities.affinity.planning.inheritance import (
    EffectivePolicy,
    effective_policies,
    is_top,
    is_well_named,
    lineage,
    name_faults,
    named_classes,
    parent_of,
)
from nodeyard.capabilities.affinity.planning.tenants import belongs_to
from nodeyard.capabilities.affinity.planning.values import host_faults
from nodeyard.capabilities.affinity.types import Tenant
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import (
    AdmissionRequest,
    AdmissionResponse,
    Found,
    Lookup,
    Missing,
    allowed,
    decode,
    denied,
    ratchet,
)

_NAMESPACE_CONTROLLER: Final = "system:serviceaccount:kube-system:namespace-controller"
"""Deletes the contents of a terminating namespace; the finalizer keeps what is in use."""


def review(review: AdmissionRequest, view: View) -> AdmissionResponse | Lookup:
    new, old = (decode(each, Tenant) for each in (review.object, review.old_object))
    if review.operation == "DELETE":
        is_whole = review.user.username == _NAMESPACE_CONTROLLER
        return allowed() if old is None or is_whole else _review_removal(old, view)
    if new is None or new.is_deleting or not new.name or is_served_elsewhere(view):
        return allowed()
    return _review_creation(new, review, view) if old is None else _review_change(new, old, view)


def _review_creation(new: Tenant, review: AdmissionRequest, view: View) -> AdmissionResponse | Lookup:
    if faults := name_faults(new.namespace, new.name):
        return ratchet([BadTenantName(object=new.ref, errors=faults).text()], [])
    warning = "" if is_top(new) else _check_parent(new, review, view)
    if not isinstance(warning, str):
        return warning
    found = _find_faults(new, view)
    if warning:
        # The plan checks the classes once the parent is in the cache.
        return ratchet(found.host, [], [warning, *found.warnings])
    return ratchet([*found.host, *_messages(found.faults)], [], found.warnings)


def _review_change(new: Tenant, old: Tenant, view: View) -> AdmissionResponse:
    """Compare the faults before and after the change; names are immutable."""
    after, before = _find_faults(new, view), _find_faults(old, view)
    earlier = {_fault_key(each) for each in before.faults}
    fresh = [each for each in after.faults if _fault_key(each) not in earlier]
    known = [each for each in after.faults if _fault_key(each) in earlier]
    host_fresh, host_known = (after.host, []) if new.spec.host != old.spec.host else ([], after.host)
    warnings = () if named_classes(new) == named_classes(old) else after.warnings
    return ratchet(
        [*host_fresh, *_messages(fresh)],
        [*host_known, *_messages(known)],
        [*warnings, *_narrowed(new, old, view)],
    )


# faults


@dataclass(frozen=True)
class _Faults:
    faults: Sequence[TenantMessage]
    """One fault per class."""
    host: list[str]
    warnings: Sequence[str]


def _find_faults(tenant: Tenant, view: View) -> _Faults:
    exist = frozenset(each for each in named_classes(tenant) if view.get(names.CLASS_KIND, each) is not None)
    branch = [tenant, *_ancestors(tenant, view)]
    policy = effective_policies(branch, exist).get(tenant.own_namespace, EffectivePolicy())
    missing = [each.text() for each in policy.faults if isinstance(each, TenantClassesMissing)]
    return _Faults(list(_refusals(policy)), _host_errors(tenant), missing)


def _refusals(policy: EffectivePolicy) -> Iterator[TenantMessage]:
    """Yield the faults that deny the request, one per class: all but missing classes."""
    for fault in policy.faults:
        if isinstance(fault, NotAllowedByParent):
            yield from (msgspec.structs.replace(fault, classes=(each,)) for each in fault.classes)
        elif not isinstance(fault, TenantClassesMissing):
            yield fault


def _fault_key(fault: TenantMessage) -> tuple[str, str]:
    """Return the reason and class of a fault, to compare it with earlier ones."""
    match fault:
        case NotAllowedByParent():
            return fault.reason, fault.classes[0]
        case DefaultNotAllowed():
            return fault.reason, fault.default
        case _:
            return fault.reason, ""


def _messages(faults: Iterable[TenantMessage]) -> list[str]:
    """Render the faults, with the classes of one reason in one message."""
    found: dict[str, TenantMessage] = {}
    for each in faults:
        known = found.get(each.reason)
        if isinstance(each, NotAllowedByParent) and isinstance(known, NotAllowedByParent):
            found[each.reason] = msgspec.structs.replace(each, classes=(*known.classes, *each.classes))
        else:
            found[each.reason] = each
    return [each.text() for each in found.values()]


def _host_errors(tenant: Tenant) -> list[str]:
    host = tenant.spec.host
    errors = host_faults(host)
    return [BadHost(object=tenant.ref, host=host, errors=errors, is_own=True).text()] if errors else []


# the tree around it


def _ancestors(tenant: Tenant, view: View) -> Iterator[Tenant]:
    for namespace in lineage(tenant.namespace):
        place, name = parent_of(namespace)
        found: Tenant | None = view.get(names.TENANT_KIND, name, place)
        if found is not None and found.own_namespace != tenant.own_namespace:
            yield found


def _check_parent(new: Tenant, review: AdmissionRequest, view: View) -> str | AdmissionResponse | Lookup:
    """Return nothing if the parent is known, a warning if it cannot be read, a denial if it does not exist."""
    if new.namespace == names.TENANT_ROOT:
        return ""
    place, name = parent_of(new.namespace)
    found: Tenant | None = view.get(names.TENANT_KIND, name, place)
    parent = msgspec.convert({"metadata": {"name": name, "namespace": place}}, Tenant) if found is None else found
    if parent.is_deleting:
        return denied(Deleting(object=parent.ref).text())
    if found is not None:
        return ""
    # The cache may be stale: the parent can be as new as its child.
    match review.answers.get(parent.ref):
        case None:
            return Lookup((parent.ref,))
        case Missing():
            return denied(ParentMissing(object=new.ref, missing=new.namespace).text())
        case Found():
            return f"the parent of {names.TENANT_KIND} {new.name} is too new: its allowed classes are not known yet"
        case unreadable:
            return f"the parent of {names.TENANT_KIND} {new.name} cannot be read: {unreadable.reason}"


def _children(tenant: Tenant, view: View) -> list[Tenant]:
    here = tenant.own_namespace
    return [each for each in view.all(names.TENANT_KIND) if each.namespace == here and not is_top(each)]


def _narrowed(new: Tenant, old: Tenant, view: View) -> Iterator[str]:
    """Yield warnings about child tenants that lose a class by this change."""
    if (new.spec.allowed_affinity_classes, new.spec.default_affinity_class) == (
        old.spec.allowed_affinity_classes,
        old.spec.default_affinity_class,
    ):
        return
    children, above = _children(new, view), list(_ancestors(new, view))
    after, before = (effective_policies([each, *above, *children], frozenset()) for each in (new, old))
    for child in filter(is_well_named, children):
        known = {_fault_key(each) for each in _refusals(before[child.own_namespace])}
        news = [each for each in _refusals(after[child.own_namespace]) if _fault_key(each) not in known]
        yield from (f"with this change: {each}" for each in _messages(news))
    yield from _withdrawn(new, old, view)


def _withdrawn(new: Tenant, old: Tenant, view: View) -> Iterator[str]:
    """Yield warnings about applications, here and in tenants below, whose class this change revokes."""
    tenants = [each for each in view.all(names.TENANT_KIND) if each.own_namespace != new.own_namespace]
    after, before = (effective_policies([each, *tenants], frozenset()) for each in (new, old))
    for namespace, policy in after.items():
        had, has = before[namespace].allowed, policy.allowed
        if has is None or had == has:
            continue
        kept = {
            name: users
            for name, users in _classes_in(namespace, view).items()
            if name not in has and (had is None or name in had)
        }
        for name, users in sorted(kept.items()):
            yield ClassRevoked(object=new.ref, affinity_class=name, place=namespace, users=sorted(users)).text()


def _classes_in(namespace: str, view: View) -> dict[str, list[str]]:
    """Return the classes of the applications in a namespace, each with its applications."""
    found: dict[str, list[str]] = {}
    for kind in application_kinds(view):
        for each in applications(view, kind, namespace):
            record = stored_record(each)
            if record is not None and record.affinity_class:
                found.setdefault(record.affinity_class, []).append(f"{kind} {each['metadata']['name']}")
    return found


# deletion


def _review_removal(old: Tenant, view: View) -> AdmissionResponse:
    # Without the finalizer the tenant is not managed here: a platform that serves tenants itself has its own rules.
    if names.TENANT_FINALIZER not in old.metadata.finalizers or old.is_deleting:
        return allowed()
    children = sorted(each.name for each in _children(old, view))
    users = sorted(
        f"{kind} {each['metadata']['name']}"
        for kind in application_kinds(view)
        for each in applications(view, kind, old.own_namespace)
    )
    if children or users:
        return denied(TenantInUse(object=old.ref, children=children, applications=len(users), users=users).text())
    live = view.get(watched.TENANT_NAMESPACES.kind, old.own_namespace)
    if live is None or is_top(old) or not belongs_to(live, old):
        return allowed()
    left = left_in(view, old.own_namespace)
    loss = NamespaceHeld(object=old.ref, left=left) if left else NamespaceDeleted(object=old.ref)
    return allowed(loss.text())
