"""Count what a tenant's namespace contains, which would be deleted with it.

Counted are volumes, workloads and pods that no controller would recreate. Secrets and all other kinds are not: the
operator has no right to list them. Applications are counted apart, since they block the deletion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.caches.applications import application_kinds, applications, unknown_applications
from nodeyard.runtime.capability import View

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
