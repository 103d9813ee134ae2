"""Registration of spares: watches, predicates, RBAC. No decisions here.

All templates share one reconcile key. Node heartbeats, template status writes and Lease renewals do not enqueue it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.spares import names, watched
from nodeyard.capabilities.spares.collect import collect, needs_pods
from nodeyard.capabilities.spares.definition import NODE_TEMPLATE
from nodeyard.capabilities.spares.messages import template_named
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.report import report
from nodeyard.capabilities.spares.report.metrics import SparesMetrics
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, is_ready, is_spare, template_of
from nodeyard.capabilities.spares.surface import SURFACE
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.capabilities.spares.webhook import policies
from nodeyard.kube.drain import is_unreachable, is_workload
from nodeyard.kube.objects import Lease, Node, Pod
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import (
    Admission,
    Capability,
    Explain,
    Key,
    Kind,
    PeerOperator,
    Roots,
    Rule,
    View,
    Watch,
)

_ALL_TEMPLATES: Final = (names.KEY,)
_NO_KEYS: Final = ()
_LEASE_SECONDS: Final = 15
"""Default lease duration of controller-runtime."""


def _node_keys(old: Node | None, new: Node | None) -> Iterable[Key]:
    if old is None or new is None:
        return _ALL_TEMPLATES
    return _NO_KEYS if _is_same_input(old, new) else _ALL_TEMPLATES


def _is_same_input(old: Node, new: Node) -> bool:
    """Compare the fields of a node that the plan reads."""
    before, after = old.metadata, new.metadata
    return (
        before.labels == after.labels
        and before.annotations == after.annotations
        and before.uid == after.uid
        and before.deletion_timestamp == after.deletion_timestamp
        and old.spec == new.spec
        and is_ready(old) == is_ready(new)
        and is_unreachable(old) == is_unreachable(new)
    )


def _template_keys(old: NodeTemplate | None, new: NodeTemplate | None) -> Iterable[Key]:
    if old is None or new is None:
        return _ALL_TEMPLATES
    before, after = old.metadata, new.metadata
    is_same = (
        old.spec == new.spec
        and before.uid == after.uid
        and before.annotations == after.annotations
        and before.finalizers == after.finalizers
        and before.deletion_timestamp == after.deletion_timestamp
    )
    return _NO_KEYS if is_same else _ALL_TEMPLATES


def _pod_keys(view: View, old: Pod | None, new: Pod | None) -> Iterable[Key]:
    """Enqueue for workload pods that appear, terminate or go on a spare or on a node that is being released.

    Pods on nodes in use change all day and are ignored; the snapshot reads them when a release starts.
    """
    before, after = map(_workload, (old, new))
    if before == after:
        return _NO_KEYS
    nodes = {workload[0] for workload in (before, after) if workload is not None}
    return _ALL_TEMPLATES if any(_needs_empty(view.get("Node", name)) for name in nodes) else _NO_KEYS


def _workload(pod: Pod | None) -> tuple[str, str, bool] | None:
    """Return node name, uid and whether the pod is terminating; None if it does not count as workload of a node."""
    if pod is None or not pod.spec.node_name or not is_workload(pod):
        return None
    return pod.spec.node_name, pod.metadata.uid, pod.metadata.deletion_timestamp is not None


def _needs_empty(node: Node | None) -> bool:
    return node is not None and (names.RELEASE in node.metadata.annotations or is_spare(node))


def _lease_keys(old: Lease | None, new: Lease | None) -> Iterable[Key]:
    holders = [lease.spec.holder_identity if lease else "" for lease in (old, new)]
    return _ALL_TEMPLATES if holders[0] != holders[1] else _NO_KEYS


def _pods_are_needed(view: View) -> bool:
    return needs_pods(view.all(names.KIND))


def find_peer(view: View, now: datetime) -> PeerOperator | None:
    """Return nyallocator while its leader election Lease is held."""
    leases: Sequence[Lease] = view.all("Lease")
    for lease in leases:
        spec = lease.spec
        if not spec.holder_identity or spec.renew_time is None:
            continue
        until = spec.renew_time + timedelta(seconds=spec.lease_duration_seconds or _LEASE_SECONDS)
        if now < until:
            return PeerOperator(
                f"nyallocator ({spec.holder_identity})",
                f"scale its Deployment in namespace {lease.metadata.namespace} to 0; Nodeyard takes over when its "
                "Lease expires",
                until,
            )
    return None


def _roots(view: View, _key: Key) -> Sequence[NodeTemplate]:
    templates: Sequence[NodeTemplate] = view.all(names.KIND)
    return templates


def _managed(snapshot: SparesSnapshot) -> int:
    return sum(1 for node in snapshot.nodes if template_of(node) is not None)


def _keys_of(_view: View, ref: ObjectRef) -> Iterable[Key]:
    return _ALL_TEMPLATES if ref.kind in ("Node", names.KIND) else _NO_KEYS


SPARES: Final = Capability(
    name=names.CAPABILITY,
    kinds=(Kind(watched.TEMPLATES, NODE_TEMPLATE.render),),
    watches=(
        Watch(watched.NODES, _node_keys),
        Watch(watched.TEMPLATES, _template_keys),
        Watch(
            watched.PODS,
            map_with_view=_pod_keys,
            indexes={names.PODS_BY_NODE: watched.by_node},
            needed=_pods_are_needed,
        ),
        Watch(
            watched.LEASES,
            _lease_keys,
            field_selector=f"metadata.name={names.PEER_LEASE}",
        ),
    ),
    all_keys=lambda _view: _ALL_TEMPLATES,
    collect=collect,
    plan=plan,
    report=report,
    rbac=(
        Rule("", ("nodes",), ("get", "list", "watch", "patch")),
        Rule("", ("pods",), ("get", "list", "watch")),
        Rule("", ("pods/eviction",), ("create",)),
        Rule(names.GROUP, (names.PLURAL,), ("get", "list", "watch", "patch")),
        Rule(names.GROUP, (f"{names.PLURAL}/status",), ("patch",)),
        Rule("coordination.k8s.io", ("leases",), ("list", "watch"), (names.PEER_LEASE,)),
    ),
    managed_nodes=_managed,
    metrics=SparesMetrics,
    replaces=find_peer,
    roots=Roots(_roots, of_action=lambda action: ("", template_named(action)), plan_handles_pause=True),
    explain=Explain(_keys_of, healthy=frozenset({Reason.SUFFICIENT, Reason.RECONCILE_SUCCESS})),
    admission=Admission(policies=policies),
    surface=SURFACE,
)
