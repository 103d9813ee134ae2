"""Collect the tree of tenants, and what would be deleted with the Namespace of each.

Counted are volumes, workloads and pods, except those that a counted workload controls. Secrets and all other kinds are
not: the operator has no right to list them. Applications are counted apart, since they block the deletion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collect.applications import (
    application_kinds,
    applications,
    get_all,
    unknown_applications,
)
from nodeyard.capabilities.affinity.collect.owners import is_served_elsewhere
from nodeyard.capabilities.affinity.snapshot import TenantsSnapshot
from nodeyard.capabilities.affinity.types import Tenant
from nodeyard.runtime.capability import View


def collect_tenants(view: View) -> TenantsSnapshot:
    tenants: Sequence[Tenant] = view.all(names.TENANT_KIND)
    deleting = [each.own_namespace for each in tenants if each.is_deleting]
    inside = {each.own_namespace for each in tenants}
    context = inside | {each.namespace for each in tenants} | {names.TENANT_ROOT}
    return TenantsSnapshot(
        tenants=tenants,
        classes=frozenset(each.name for each in view.all(names.CLASS_KIND)),
        namespaces=get_all(view, watched.TENANT_NAMESPACES.kind, ((name, "") for name in context)),
        values={
            namespace: secret
            for namespace in sorted(context | {names.PLATFORM_NAMESPACE})
            if (secret := view.get(watched.VALUES.kind, names.VALUES_SECRET, namespace)) is not None
        },
        applications={namespace: count_applications(view, namespace) for namespace in deleting},
        left={namespace: left for namespace in deleting if (left := left_in(view, namespace))},
        is_served_elsewhere=is_served_elsewhere(view),
        watch_error=unknown_contents(view) if deleting else "",
    )


# contents

_COUNTED_KINDS: Final = (watched.CLAIMS.kind, *(each.kind for each in watched.OWNERS), watched.PLACED_PODS.kind)


def left_in(view: View, namespace: str) -> Mapping[str, int]:
    """Count the objects of each counted kind."""
    found = {kind: view.counted(kind, names.BY_NAMESPACE, namespace) for kind in _COUNTED_KINDS}
    return {kind: number for kind, number in found.items() if number}


def count_applications(view: View, namespace: str) -> int:
    """Count the applications, both watched and only released."""
    found = {
        f"{kind}/{namespace}/{each['metadata']['name']}"
        for kind in application_kinds(view)
        for each in applications(view, kind, namespace)
    }
    for release in view.indexed(names.RELEASE_KIND, names.BY_NAMESPACE, namespace):
        found.update(watched.release_application(release))
    return len(found)


def unknown_contents(view: View) -> str:
    """Return why it is not known what a namespace contains; empty if every counted kind is synced."""
    for kind in _COUNTED_KINDS:
        if not view.is_synced(kind):
            return view.watch_error(kind) or f"the cache of {kind} has not synced yet"
    return next(filter(None, (unknown_applications(view, kind) for kind in application_kinds(view))), "")
