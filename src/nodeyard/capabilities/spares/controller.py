"""What spares watches, and which events make it plan again. No decisions here.

All templates share one stock, so there is one key. A node's heartbeat, a template's own status and the renewals of a
lease change nothing that is decided by, and so cause no plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.definition import NODE_TEMPLATE
from nodeyard.capabilities.spares.events import events
from nodeyard.capabilities.spares.messages import text
from nodeyard.capabilities.spares.metrics import SparesMetrics
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.policies import policies
from nodeyard.capabilities.spares.snapshot import (
    SparesSnapshot,
    collect,
    is_ready,
    is_spare,
    is_workload,
    needs_pods,
    template_of,
)
from nodeyard.capabilities.spares.status import status
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.client import resources
from nodeyard.client.resources import Resource
from nodeyard.kube.objects import Lease, Node, Pod
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Capability, Key, Kind, Living, Rule, View, Watch

TEMPLATES: Final = Resource(names.GROUP, names.VERSION, names.PLURAL, names.KIND, False, NodeTemplate)
_EVERYTHING: Final = (names.KEY,)
_NOTHING: Final = ()
_LEASE_SECONDS: Final = 15
"""What controller-runtime gives a leader before another may take over."""


def _node_keys(old: Node | None, new: Node | None) -> Iterable[Key]:
    if old is None or new is None:
        return _EVERYTHING
    return _NOTHING if _decides_alike(old, new) else _EVERYTHING


def _decides_alike(old: Node, new: Node) -> bool:
    before, after = old.metadata, new.metadata
    return (
        before.labels == after.labels
        and before.annotations == after.annotations
        and before.uid == after.uid
        and before.deletion_timestamp == after.deletion_timestamp
        and old.spec == new.spec
        and is_ready(old) == is_ready(new)
    )


def _template_keys(old: NodeTemplate | None, new: NodeTemplate | None) -> Iterable[Key]:
    if old is None or new is None:
        return _EVERYTHING
    before, after = old.metadata, new.metadata
    is_alike = (
        old.spec == new.spec
        and before.uid == after.uid
        and before.annotations == after.annotations
        and before.finalizers == after.finalizers
        and before.deletion_timestamp == after.deletion_timestamp
    )
    return _NOTHING if is_alike else _EVERYTHING


def _pod_keys(view: View, old: Pod | None, new: Pod | None) -> Iterable[Key]:
    """A pod matters by being a node's workload, or going, where the node is a spare or on its way to be one.

    Those of nodes in use come and go all day. When one of these is to be given back they are looked at as they are."""
    before, after = map(_burden, (old, new))
    if before == after:
        return _NOTHING
    nodes = {burden[0] for burden in (before, after) if burden is not None}
    return _EVERYTHING if any(_is_to_be_empty(view.get("Node", name)) for name in nodes) else _NOTHING


def _burden(pod: Pod | None) -> tuple[str, str, bool] | None:
    """Which node it keeps from being empty, as which pod, and whether it goes already; None where it keeps none."""
    if pod is None or not pod.spec.node_name or not is_workload(pod):
        return None
    return pod.spec.node_name, pod.metadata.uid, pod.metadata.deletion_timestamp is not None


def _is_to_be_empty(node: Node | None) -> bool:
    return node is not None and (names.RELEASE in node.metadata.annotations or is_spare(node))


def _lease_keys(old: Lease | None, new: Lease | None) -> Iterable[Key]:
    holders = [lease.spec.holder_identity if lease else "" for lease in (old, new)]
    return _EVERYTHING if holders[0] != holders[1] else _NOTHING


def _pods_by_node(pod: Pod) -> Iterable[str]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def _pods_are_needed(view: View) -> bool:
    return needs_pods(view.all(names.KIND))


def living_original(view: View, now: datetime) -> Living | None:
    """nyallocator, by its leader's Lease."""
    for lease in view.all("Lease"):
        spec: Lease = lease
        renewed = spec.spec.renew_time
        if not spec.spec.holder_identity or renewed is None:
            continue
        until = renewed + timedelta(seconds=spec.spec.lease_duration_seconds or _LEASE_SECONDS)
        if now < until:
            where = spec.metadata.namespace
            return Living(
                f"nyallocator ({spec.spec.holder_identity})",
                f"scale its Deployment in the namespace {where} to 0; Nodeyard takes over when its Lease has expired",
                until,
            )
    return None


def _roots(view: View, _key: Key) -> Sequence[NodeTemplate]:
    templates: Sequence[NodeTemplate] = view.all(names.KIND)
    return templates


def _managed(snapshot: SparesSnapshot) -> int:
    return sum(1 for node in snapshot.nodes if template_of(node) is not None)


def _keys_of(_view: View, ref: ObjectRef) -> Iterable[Key]:
    return _EVERYTHING if ref.kind in ("Node", names.KIND) else _NOTHING


SPARES: Final = Capability(
    name=names.CAPABILITY,
    kinds=(Kind(TEMPLATES, NODE_TEMPLATE.render),),
    watches=(
        Watch(resources.NODES.decoded_as(Node), _node_keys),
        Watch(TEMPLATES, _template_keys),
        Watch(
            resources.PODS.decoded_as(Pod),
            keys_in=_pod_keys,
            indexes={names.PODS_BY_NODE: _pods_by_node},
            needed=_pods_are_needed,
        ),
        Watch(
            resources.LEASES.decoded_as(Lease),
            _lease_keys,
            field_selector=f"metadata.name={names.ORIGINAL_LEASE}",
        ),
    ),
    collect=collect,
    plan=plan,
    status=status,
    events=events,
    messages=text,
    rbac=(
        Rule("", ("nodes",), ("get", "list", "watch", "patch")),
        Rule("", ("pods",), ("get", "list", "watch")),
        Rule("", ("pods/eviction",), ("create",)),
        Rule(names.GROUP, (names.PLURAL,), ("get", "list", "watch", "patch")),
        Rule(names.GROUP, (f"{names.PLURAL}/status",), ("patch",)),
        Rule("coordination.k8s.io", ("leases",), ("list", "watch"), (names.ORIGINAL_LEASE,)),
    ),
    roots=_roots,
    plans_pauses=True,
    managed=_managed,
    keys_of=_keys_of,
    all_keys=lambda _view: _EVERYTHING,
    metrics=SparesMetrics,
    original=living_original,
    policies=policies,
    example="01-spares",
)
