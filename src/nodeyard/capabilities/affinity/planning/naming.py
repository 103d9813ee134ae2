"""Validate the names of tenants and derive their place in the tree.

A tenant's namespace is named after its parent's namespace and its own name, so the name encodes the tree. Tenant names
have no dash, so no two tenants share a namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.definition_validation import RELEASE_NAME_MAX
from nodeyard.capabilities.affinity.types import Tenant
from nodeyard.kube.names import LABEL_VALUE_MAX

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
