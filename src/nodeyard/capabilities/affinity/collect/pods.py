"""Collect a running pod with its owners and its placement, for `why`.

It uses the same walk and checks as admission, on the current caches. `unwatched_owner_kinds` names the kinds of owners
that have to be watched first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import msgspec

from nodeyard.capabilities.affinity import watched
from nodeyard.capabilities.affinity.collect.applications import PlacementContext, recorded_applications
from nodeyard.capabilities.affinity.collect.owners import cached, without_foreign_records
from nodeyard.capabilities.affinity.planning.containment import node_of_daemon
from nodeyard.capabilities.affinity.planning.lineage import Find, LookupResult, Pending, walk
from nodeyard.capabilities.affinity.planning.placement import Subject, is_exempt, place
from nodeyard.capabilities.affinity.snapshot import PodSnapshot
from nodeyard.client.resources import view_kind
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import Cause, Missing, Unreadable

_POD: Final = watched.PLACED_PODS.kind


def collect_pod(view: View, namespace: str, name: str) -> PodSnapshot | None:
    pod: watched.PlacedPod | None = view.get(_POD, name, namespace)
    if pod is None:
        return None
    lineage = walk(_ref(pod), pod.metadata, _finder(view, waits=False), partial(recorded_applications, view))
    if isinstance(lineage, Pending):
        return None
    context = PlacementContext(view, namespace)
    required = None if pod.spec.affinity is None else pod.spec.affinity.required_nodes
    node = node_of_daemon(pod.metadata, required)
    subject = Subject(f"pod {namespace}/{name}", namespace, pod.spec.node_selector, required, node)
    placement = place(subject, lineage, context)
    return PodSnapshot(
        ref=_ref(pod),
        lineage=lineage,
        placement=placement,
        policy=context.policy(),
        affinity_class=context.affinity_class(placement.affinity_class) if placement.affinity_class else None,
        is_exempt=is_exempt(namespace, context.namespace_labels()),
    )


def unwatched_owner_kinds(view: View, ref: ObjectRef) -> Iterator[tuple[str, str]]:
    """Yield the kinds of a pod's owners that are not watched yet, as apiVersion and kind."""
    pod: watched.PlacedPod | None = view.get(_POD, ref.name, ref.namespace) if ref.kind == _POD else None
    if pod is None:
        return
    found = walk(_ref(pod), pod.metadata, _finder(view, waits=True), partial(recorded_applications, view))
    if isinstance(found, Pending):
        yield from dict.fromkeys((each.api_version, each.kind) for each in found.refs)


def _ref(pod: watched.PlacedPod) -> ObjectRef:
    metadata = pod.metadata
    return ObjectRef(
        api_version="v1",
        kind=_POD,
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
    )


def _finder(view: View, *, waits: bool) -> Find:
    """Return a lookup in the caches. With `waits`, None stands for owners whose kind is not watched yet."""

    def find(ref: ObjectRef) -> LookupResult:
        # The walk itself compares the uid.
        found = cached(view, msgspec.structs.replace(ref, uid=""))
        return found or _absent(view, ref, waits=waits)

    return without_foreign_records(find, view)


def _absent(view: View, ref: ObjectRef, *, waits: bool) -> LookupResult:
    kind = view_kind(ref.api_version, ref.kind)
    try:
        watch_error, is_synced = view.watch_error(kind), view.is_synced(kind)
    except KeyError:
        return None if waits else Unreadable(f"{kind} is not watched", Cause.ERROR)
    if watch_error:
        return Unreadable(watch_error, Cause.FORBIDDEN if "forbidden" in watch_error else Cause.ERROR)
    if not is_synced:
        return Unreadable(f"the cache of {kind} has not synced yet", Cause.TIMEOUT)
    if not view.versions(ref.api_version.rpartition("/")[0], ref.kind):
        return Unreadable(f"the API server does not serve {kind}", Cause.NOT_SERVED)
    return Missing()
