"""Compute the effective policy of each tenant from the tree of Tenants alone, and validate their names.

    default    its own, else that of the nearest ancestor that sets one; "" means no default
    allowed    its own list restricted to the parent's effective list; the parent's if it has none; [] allows none
    strict     if a tenant above requires a class for every application, or holds pods of no application to its
               classes, so does this one: otherwise a user who may create child tenants could escape the classes

A list that exceeds the parent's, and a default that is not allowed, are faults. Neither takes effect: the effective
list is always a subset of the parent's. A Tenant without a parent has no effective classes.

`tenant-root` is the root. Without a Tenant of its own it restricts nothing.

A tenant's namespace is named after its parent's namespace and its own name, so the name encodes the tree. Tenant names
have no dash, so no two tenants share a namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.tenants import (
    DefaultNotAllowed,
    NotAllowedByParent,
    ParentMissing,
    TenantClassesMissing,
    TenantMessage,
)
from nodeyard.capabilities.affinity.types import Tenant, UnownedPods
from nodeyard.capabilities.affinity.validation import RELEASE_NAME_MAX
from nodeyard.kube.names import LABEL_VALUE_MAX

# names of tenants, and their place in the tree


_NAME: Final = "^[a-z][a-z0-9]*$"
_NAME_RE: Final = re.compile(_NAME[1:-1])
_NAME_MAX: Final = RELEASE_NAME_MAX - len(names.TENANT_PREFIX)
"""CozyStack releases a tenant as `tenant-<name>`."""


def name_faults(namespace: str, name: str) -> list[str]:
    """Return the faults of a tenant with this name and namespace."""
    faults = []
    if not _NAME_RE.fullmatch(name):
        faults.append(f"metadata.name {name!r} must match {_NAME}: a letter, then letters and digits, no dashes")
    elif len(name) > _NAME_MAX:
        faults.append(f"metadata.name {name!r} must be no more than {_NAME_MAX} characters")
    if not is_tenant_namespace(namespace):
        faults.append(
            f"metadata.namespace {namespace!r} belongs to no tenant: create a {names.TENANT_KIND} in the namespace of "
            f"its parent, at the top in {names.TENANT_ROOT}"
        )
    elif len(own := names.tenant_namespace(namespace, name)) > LABEL_VALUE_MAX:
        faults.append(f"its namespace {own!r} would have more than {LABEL_VALUE_MAX} characters")
    return faults


def is_well_named(tenant: Tenant) -> bool:
    return not name_faults(tenant.namespace, tenant.name)


def is_top(tenant: Tenant) -> bool:
    """Return whether it is the Tenant `root`, which lives in its own namespace."""
    return tenant.own_namespace == tenant.namespace == names.TENANT_ROOT


def is_tenant_namespace(namespace: str) -> bool:
    return namespace.startswith(names.TENANT_PREFIX) and namespace != names.TENANT_PREFIX


def parent_of(namespace: str) -> tuple[str, str]:
    """Return the namespace and the name of the Tenant that a namespace belongs to."""
    if namespace == names.TENANT_ROOT:
        return names.TENANT_ROOT, names.ROOT_TENANT
    above, _, name = namespace.rpartition("-")
    return (above if is_tenant_namespace(above) else names.TENANT_ROOT), name


def lineage(namespace: str) -> Iterator[str]:
    """Yield the namespace of a tenant and those of its ancestors, up to `tenant-root`."""
    while namespace != names.TENANT_ROOT:
        yield namespace
        namespace, _ = parent_of(namespace)
    yield names.TENANT_ROOT


# effective policies


@dataclass(frozen=True)
class EffectivePolicy:
    """The rules for classes in one namespace, from the whole tree of tenants."""

    tenant: Tenant | None = None
    """None outside tenants."""
    default: str = ""
    allowed: tuple[str, ...] | None = None
    """None if all classes are allowed."""
    fault: str = ""
    """Why the default cannot be used; empty if it can."""
    faults: tuple[TenantMessage, ...] = ()
    """All faults of the tenant's spec, for conditions and reviews."""
    restricting: tuple[Tenant, ...] = ()
    """The tenants with an allowed list, here and above, the topmost first."""
    needs_class_above: bool = False
    """A tenant above requires a class for every application."""
    holds_unowned_above: bool = False
    """A tenant above requires pods of no application to fit its classes."""

    @property
    def needs_class(self) -> bool:
        """Return whether every application needs a class: there is a default, and only some classes are allowed."""
        return self.needs_class_above or (self.allowed is not None and bool(self.default or self.fault))

    @property
    def holds_unowned(self) -> bool:
        """Return whether pods of no application must fit at least one allowed class."""
        own = self.tenant is not None and self.tenant.spec.unowned_pods is UnownedPods.REQUIRE_ALLOWED
        return own or self.holds_unowned_above

    def lacking(self, affinity_class: str = "") -> tuple[str, ...]:
        """Return the tenants whose list has to get a class, or this one, before applications here may use it."""
        tenants = (
            each for each in self.restricting if affinity_class not in (each.spec.allowed_affinity_classes or ())
        )
        return tuple(each.name for each in tenants)

    @property
    def usable_default(self) -> str:
        """Return the effective default; empty for none."""
        return "" if self.fault else self.default


def effective_policies(tenants: Iterable[Tenant], classes: frozenset[str]) -> Mapping[str, EffectivePolicy]:
    """Return the policies by namespace, including `tenant-root`; `classes` are the existing ones.

    Tenants with invalid names are left out: they must not claim the namespace of another tenant.
    """
    tree = {each.own_namespace: each for each in tenants if is_well_named(each)}
    root, unrestricted = tree.get(names.TENANT_ROOT), _Resolved(EffectivePolicy())
    found = {names.TENANT_ROOT: unrestricted if root is None else _resolve_child(root, unrestricted, classes)}
    for namespace in tree:
        _resolve(namespace, tree, found, classes)
    return {namespace: each.policy for namespace, each in found.items()}


@dataclass(frozen=True)
class _Resolved:
    """The policy of a namespace, and what its children inherit."""

    policy: EffectivePolicy
    members: frozenset[str] | None = None
    """The allowed classes as a set; None if all are."""
    source: str = names.TENANT_ROOT
    """The namespace of the tenant that sets the default."""
    missing: str = ""
    """The namespace above it that belongs to no tenant."""


def _resolve(
    namespace: str, tree: Mapping[str, Tenant], found: dict[str, _Resolved], classes: frozenset[str]
) -> _Resolved:
    """Resolve parents first; namespace names have at most 63 characters, so the recursion is bounded."""
    known = found.get(namespace)
    if known is not None:
        return known
    tenant = tree.get(namespace)
    if tenant is None:
        return _Resolved(EffectivePolicy(), missing=namespace)
    parent = _resolve(tenant.namespace, tree, found, classes)
    found[namespace] = (
        _resolve_orphan(tenant, parent.missing) if parent.missing else _resolve_child(tenant, parent, classes)
    )
    return found[namespace]


def _resolve_orphan(tenant: Tenant, missing: str) -> _Resolved:
    policy = EffectivePolicy(
        tenant=tenant,
        default=tenant.spec.default_affinity_class or "",
        allowed=(),
        fault=f"the namespace {missing} above it belongs to no {names.TENANT_KIND}",
        faults=(ParentMissing(object=tenant.ref, missing=missing),),
    )
    return _Resolved(policy, members=frozenset(), missing=missing)


def _resolve_child(tenant: Tenant, parent: _Resolved, classes: frozenset[str]) -> _Resolved:
    allowed, members, faults = _resolve_allowed(tenant, parent)
    own, own_list = tenant.spec.default_affinity_class, tenant.spec.allowed_affinity_classes
    default, source = (parent.policy.default, parent.source) if own is None else (own, tenant.own_namespace)
    error = ""
    if default and members is not None and default not in members:
        error = f"it is not one of the allowed classes {', '.join(allowed)}" if allowed else "no class is allowed"
        ref = tenant.ref
        faults.append(DefaultNotAllowed(object=ref, default=default, source=source, allowed=allowed or ()))
    faults += _missing_classes(tenant, classes)
    policy = EffectivePolicy(
        tenant=tenant,
        default=default,
        allowed=allowed,
        fault=error,
        faults=tuple(faults),
        restricting=parent.policy.restricting if own_list is None else (*parent.policy.restricting, tenant),
        needs_class_above=parent.policy.needs_class,
        holds_unowned_above=parent.policy.holds_unowned,
    )
    return _Resolved(policy, members, source)


def _resolve_allowed(
    tenant: Tenant, parent: _Resolved
) -> tuple[tuple[str, ...] | None, frozenset[str] | None, list[TenantMessage]]:
    """Return the allowed classes as a list and as a set, and the faults of the tenant's own list."""
    own, above = tenant.spec.allowed_affinity_classes, parent.members
    if own is None:
        return parent.policy.allowed, above, []
    listed = tuple(dict.fromkeys(own))
    if above is None:
        return listed, frozenset(listed), []
    outside = tuple(each for each in listed if each not in above)
    inside = tuple(each for each in listed if each in above)
    if not outside:
        return inside, frozenset(inside), []
    fault = NotAllowedByParent(
        object=tenant.ref,
        classes=outside,
        parent=tenant.namespace,
        allowed=parent.policy.allowed or (),
    )
    return inside, frozenset(inside), [fault]


def _missing_classes(tenant: Tenant, classes: frozenset[str]) -> list[TenantMessage]:
    """Return the fault of missing classes that the tenant names itself; inherited ones are the parent's fault."""
    named = dict.fromkeys(named_classes(tenant))
    missing = tuple(each for each in named if each not in classes)
    return [TenantClassesMissing(object=tenant.ref, classes=missing)] if missing else []


def named_classes(tenant: Tenant) -> tuple[str, ...]:
    """Return the classes that a tenant names, its default first."""
    default = tenant.spec.default_affinity_class
    return (*((default,) if default else ()), *(tenant.spec.allowed_affinity_classes or ()))
