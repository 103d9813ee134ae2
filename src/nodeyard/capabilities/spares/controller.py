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
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, collect, is_ready, needs_pods
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


def _pod_keys(old: Pod | None, new: Pod | None) -> Iterable[Key]:
    """A pod matters by being on a node or not, and by being finished or not."""
    before, after = (pod and (pod.spec.node_name, pod.status.phase) for pod in (old, new))
    is_terminating = bool(new and new.metadata.deletion_timestamp) != bool(old and old.metadata.deletion_timestamp)
    return _EVERYTHING if before != after or is_terminating else _NOTHING


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
    return sum(1 for node in snapshot.nodes if names.TEMPLATE_LABEL in node.metadata.labels)


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
            _pod_keys,
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
