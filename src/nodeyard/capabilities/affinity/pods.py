"""A running pod, looked at again when somebody asks why it may be where it is. Nothing is done to it.

The same walk and the same judgement as at admission, from what is watched now. Owners of kinds that nobody watches yet
are named first (`sights`), so that whoever asks can have them watched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from nodeyard.capabilities.affinity import watched
from nodeyard.capabilities.affinity.owners import cached
from nodeyard.capabilities.affinity.planning.daemons import node_of_daemon
from nodeyard.capabilities.affinity.planning.lineage import Find, Lineage, Pending, Sought, walk
from nodeyard.capabilities.affinity.planning.placement import Placement, Subject, is_exempt, place
from nodeyard.capabilities.affinity.snapshot import Standing
from nodeyard.capabilities.affinity.surroundings import Surroundings
from nodeyard.capabilities.affinity.types import AffinityClass
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Key, View
from nodeyard.runtime.webhooks import Cause, Missing, Unreadable

POD: Final = "Pod"
KEY_PREFIX: Final = "pod/"


@dataclass(frozen=True)
class PodSnapshot:
    ref: ObjectRef
    lineage: Lineage
    placement: Placement
    standing: Standing
    affinity_class: AffinityClass | None
    """The one it is judged by, where there is one."""
    is_exempt: bool
    """Its namespace is never checked."""


def pod_key(namespace: str, name: str) -> Key:
    return f"{KEY_PREFIX}{namespace}/{name}"


def collect_pod(view: View, namespace: str, name: str) -> PodSnapshot | None:
    pod: watched.PlacedPod | None = view.get(POD, name, namespace)
    if pod is None:
        return None
    lineage = walk(_ref(pod), pod.metadata, _finder(view, waits=False))
    if isinstance(lineage, Pending):
        return None
    around = Surroundings(view, namespace)
    required = None if pod.spec.affinity is None else pod.spec.affinity.required_nodes
    node = node_of_daemon(pod.metadata, required)
    subject = Subject(f"pod {namespace}/{name}", namespace, pod.spec.node_selector, required, node)
    placement = place(subject, lineage, around)
    return PodSnapshot(
        ref=_ref(pod),
        lineage=lineage,
        placement=placement,
        standing=around.standing(),
        affinity_class=around.affinity_class(placement.affinity_class) if placement.affinity_class else None,
        is_exempt=is_exempt(namespace, around.namespace_labels()),
    )


def sights(view: View, ref: ObjectRef) -> Iterator[tuple[str, str]]:
    """The kinds of a pod's owners that nobody watches yet, as apiVersion and kind."""
    pod: watched.PlacedPod | None = view.get(POD, ref.name, ref.namespace) if ref.kind == POD else None
    if pod is None:
        return
    found = walk(_ref(pod), pod.metadata, _finder(view, waits=True))
    if isinstance(found, Pending):
        yield from dict.fromkeys((each.api_version, each.kind) for each in found.refs)


def _ref(pod: watched.PlacedPod) -> ObjectRef:
    metadata = pod.metadata
    return ObjectRef(api_version="v1", kind=POD, name=metadata.name, namespace=metadata.namespace, uid=metadata.uid)


def _finder(view: View, *, waits: bool) -> Find:
    """Finds owners in the cache; where it waits, None stands for those that may still come to be watched."""

    def find(ref: ObjectRef) -> Sought:
        # The walk itself tells whether it is the one that is meant.
        found = cached(view, msgspec.structs.replace(ref, uid=""))
        return found or _absent(view, ref, waits=waits)

    return find


def _absent(view: View, ref: ObjectRef, *, waits: bool) -> Sought:
    group = ref.api_version.rpartition("/")[0]
    kind = f"{ref.kind}.{group or 'core'}"
    try:
        trouble, is_synced = view.trouble(kind), view.is_synced(kind)
    except KeyError:
        return None if waits else Unreadable(f"{kind} is not watched", Cause.ERROR)
    if trouble:
        return Unreadable(trouble, Cause.FORBIDDEN if "forbidden" in trouble else Cause.ERROR)
    if not is_synced:
        return Unreadable(f"{kind} has not been told yet", Cause.TIMEOUT)
    if not view.versions(group, ref.kind):
        return Unreadable(f"the server does not have {kind}", Cause.NOT_SERVED)
    return Missing()
