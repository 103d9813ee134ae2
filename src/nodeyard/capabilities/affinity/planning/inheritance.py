"""Which classes each tenant has in effect, told from the tree of Tenants alone.

    default    its own; else its nearest ancestor's that says one. "" is a way to say none
    allowed    its own list within what its parent has in effect; the parent's where it has no list; [] is none at all
    strict     where a tenant above lets no application go without a class, or holds pods of nobody to its classes, so
               does this one: else whoever may make tenants within their own could leave its classes

A list that reaches beyond the parent's, and a default that is not allowed, are faults, and neither is passed on: what
is in effect is within the parent's in any case. A Tenant whose parent is not there has nothing in effect.

`tenant-root` is the top. Without a Tenant of its own it restricts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.naming import is_well_named, tenant_facts
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import Fault, Standing
from nodeyard.capabilities.affinity.types import Tenant


def standings(tenants: Iterable[Tenant], classes: frozenset[str]) -> Mapping[str, Standing]:
    """By the tenants' own namespaces, and of `tenant-root`; `classes` are those that exist.

    Tenants whose names are no tenants' are left out: nobody else's namespace is theirs.
    """
    tree = {each.own_namespace: each for each in tenants if is_well_named(each)}
    found = {names.TENANT_ROOT: _top(tree.get(names.TENANT_ROOT), classes)}
    for namespace in tree:
        _resolve(namespace, tree, found, classes)
    return {namespace: each.standing for namespace, each in found.items()}


@dataclass(frozen=True)
class _Found:
    """What a namespace has in effect, and what its children inherit."""

    standing: Standing
    members: frozenset[str] | None = None
    """The allowed classes as a set; None where all are."""
    source: str = names.TENANT_ROOT
    """Whose default it is: a tenant's own namespace."""
    missing: str = ""
    """The namespace above it that is no tenant's."""


def _resolve(namespace: str, tree: Mapping[str, Tenant], found: dict[str, _Found], classes: frozenset[str]) -> _Found:
    """Parents first; a namespace is at most 63 characters long, so no branch is deep."""
    known = found.get(namespace)
    if known is not None:
        return known
    tenant = tree.get(namespace)
    if tenant is None:
        return _Found(Standing(), missing=namespace)
    parent = _resolve(tenant.namespace, tree, found, classes)
    found[namespace] = _orphaned(tenant, parent.missing) if parent.missing else _below(tenant, parent, classes)
    return found[namespace]


def _orphaned(tenant: Tenant, missing: str) -> _Found:
    fault = Fault(Reason.PARENT_MISSING, tenant_facts(tenant, missing=missing))
    standing = Standing(
        tenant=tenant,
        default=tenant.spec.default_affinity_class or "",
        allowed=(),
        fault=f"the namespace {missing} above it belongs to no {names.TENANT_KIND}",
        faults=(fault,),
    )
    return _Found(standing, members=frozenset(), missing=missing)


def _top(tenant: Tenant | None, classes: frozenset[str]) -> _Found:
    unrestricted = _Found(Standing())
    return unrestricted if tenant is None else _below(tenant, unrestricted, classes)


def _below(tenant: Tenant, parent: _Found, classes: frozenset[str]) -> _Found:
    allowed, members, faults = _allowed(tenant, parent)
    own = tenant.spec.default_affinity_class
    default, source = (parent.standing.default, parent.source) if own is None else (own, tenant.own_namespace)
    error = ""
    if default and members is not None and default not in members:
        error = f"it is not among the allowed classes {', '.join(allowed)}" if allowed else "no class is allowed"
        facts = tenant_facts(tenant, default=default, allowed=list(allowed or ()), source=source)
        faults.append(Fault(Reason.DEFAULT_NOT_ALLOWED, facts))
    faults += _missing_classes(tenant, classes)
    standing = Standing(
        tenant=tenant,
        default=default,
        allowed=allowed,
        fault=error,
        faults=tuple(faults),
        needs_class_above=parent.standing.needs_class,
        holds_unowned_above=parent.standing.holds_unowned,
    )
    return _Found(standing, members, source)


def _allowed(tenant: Tenant, parent: _Found) -> tuple[tuple[str, ...] | None, frozenset[str] | None, list[Fault]]:
    """What is allowed, as it is listed and as a set, and what is wrong with the tenant's own list."""
    own, above = tenant.spec.allowed_affinity_classes, parent.members
    if own is None:
        return parent.standing.allowed, above, []
    listed = tuple(dict.fromkeys(own))
    if above is None:
        return listed, frozenset(listed), []
    outside = [each for each in listed if each not in above]
    inside = tuple(each for each in listed if each in above)
    if not outside:
        return inside, frozenset(inside), []
    within = list(parent.standing.allowed or ())
    facts = tenant_facts(tenant, classes=outside, parent=tenant.namespace, allowed=within)
    return inside, frozenset(inside), [Fault(Reason.NOT_IN_PARENT, facts)]


def _missing_classes(tenant: Tenant, classes: frozenset[str]) -> list[Fault]:
    """Of what the tenant says itself: what it inherits is its parent's to mend."""
    said = dict.fromkeys(named_classes(tenant))
    missing = [each for each in said if each not in classes]
    return [Fault(Reason.CLASS_MISSING, tenant_facts(tenant, classes=missing))] if missing else []


def named_classes(tenant: Tenant) -> tuple[str, ...]:
    """The classes that a tenant names, its default first."""
    default = tenant.spec.default_affinity_class
    return (*((default,) if default else ()), *(tenant.spec.allowed_affinity_classes or ()))
