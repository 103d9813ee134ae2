"""What is said about LatticeClusters and classes before they are stored. Nothing waits, and nothing gets locked.

Denied is what could never work: keys that would keep nodes from joining, and the deletion of the cluster we run on. An
update that leaves such keys as they were passes with a warning, so that a cluster that has them can still be scaled,
mended and deleted. Everything else worth knowing is a warning. What a change would do is asked of the planner itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.collecting import collect
from nodeyard.capabilities.pools.messages import text
from nodeyard.capabilities.pools.plan import plan
from nodeyard.capabilities.pools.planning.deletion import delete_cluster
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import (
    DeletionPolicy,
    DockerClass,
    LatticeCluster,
    LatticeNodeClass,
    WorkerPool,
    resolved_pools,
)
from nodeyard.capabilities.pools.validity import Fault, faults
from nodeyard.kube.json import Object
from nodeyard.plan.draft import Draft
from nodeyard.plan.layout import counted
from nodeyard.plan.model import Action, Disruption
from nodeyard.plan.sentences import listed
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import Intercepts, Review, Verdict, Webhook, allowed, denied

_ANY_MOMENT: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Two plans are compared, of the same moment; which one does not matter."""
_INVALID_CODE: Final = 422
_TOLD: Final = (Disruption.REPLACES, Disruption.DELETES)

Pools = Mapping[str, WorkerPool]


def review_cluster(review: Review, view: View) -> Verdict:
    if review.operation == "DELETE":
        return _review_deletion(review, view)
    new, old = _cluster(review.object), _cluster(review.old_object)
    if new is None or new.is_deleting:
        return allowed()
    if old is not None and old.spec == new.spec:
        return allowed()
    before, after = _pools(old), _pools(new)
    fresh, standing = _faults(before, after)
    if fresh:
        return denied("; ".join(map(str, fresh)), code=_INVALID_CODE, reason="Invalid")
    return allowed(
        *(f"{fault}; it was there before and is let through" for fault in standing),
        *_notices(new, old, before, after),
        *_consequences(new, view),
    )


def _cluster(obj: Object | None) -> LatticeCluster | None:
    """None also where it does not decode: the plan blocks it, with the error."""
    return None if obj is None else _decoded(obj, LatticeCluster)


def _decoded(obj: Object, kind: type[Any]) -> Any | None:
    try:
        return msgspec.convert(obj, kind)
    except msgspec.ValidationError:
        return None


def _pools(cluster: LatticeCluster | None) -> Pools:
    return {} if cluster is None else resolved_pools(cluster.spec.nodes)


# keys


def _faults(before: Pools, after: Pools) -> tuple[list[Fault], list[Fault]]:
    """What this change brings, and what was wrong before it."""
    fresh: list[Fault] = []
    standing: list[Fault] = []
    for id, pool in after.items():
        known = {_essence(fault) for fault in faults(id, before[id])} if id in before else set()
        for fault in faults(id, pool):
            (standing if _essence(fault) in known else fresh).append(fault)
    return fresh, standing


def _essence(fault: Fault) -> tuple[str, str]:
    """A fault of a pool wherever it stands: taints may change places."""
    return fault.value, fault.message


# what is worth knowing


def _notices(new: LatticeCluster, old: LatticeCluster | None, before: Pools, after: Pools) -> Iterator[str]:
    for id, pool in after.items():
        if (pool.min is not None or pool.max is not None) and not new.is_autoscaled:
            yield text(Reason.AUTOSCALING_IGNORED, {"pool": id, "replicas": pool.replicas})
    if before and not after:
        yield text(Reason.ALL_POOLS_REMOVED, {"cluster": new.name})
    if new.policy is not DeletionPolicy.ORPHAN:
        return
    gone = [id for id in before if id not in after]
    for id in gone:
        yield text(Reason.ORPHAN_DELETES, {"pool": id})
    if not gone and (old is None or old.policy is not new.policy):
        yield text(Reason.ORPHAN_DELETES, {})


def _consequences(new: LatticeCluster, view: View) -> list[str]:
    """What the planner would take away because of this change, and would not without it."""
    snapshot = collect(view, new.name, _ANY_MOMENT)
    if snapshot is None:
        return []
    known = {_text(action) for action in _disruptive(snapshot)}
    changed = replace(snapshot, cluster=new, classes=_classes(view, new))
    return [said for action in _disruptive(changed) if (said := _text(action)) not in known]


def _classes(view: View, cluster: LatticeCluster) -> dict[str, LatticeNodeClass]:
    wanted = sorted({pool.node_class for pool in _pools(cluster).values() if pool.node_class})
    found = {name: view.get(names.CLASS_KIND, name) for name in wanted}
    return {name: each for name, each in found.items() if each is not None}


def _disruptive(snapshot: PoolsSnapshot) -> list[Action]:
    return [action for action in plan(snapshot, _ANY_MOMENT).plan.actions if action.disruption in _TOLD]


def _text(action: Action) -> str:
    return text(action.reason, action.facts)


# deletion


def _review_deletion(review: Review, view: View) -> Verdict:
    """Denied where the planner would refuse it: a deletion that is stored cannot be taken back."""
    snapshot = collect(view, review.name, _ANY_MOMENT)
    if snapshot is None:
        return allowed()
    asked = _cluster(review.old_object) or snapshot.cluster
    if asked.metadata.annotations.get(names.ORPHAN_ON_DELETE) == names.TRUE:
        return allowed(f"{review.name} is let go of as it is: its machines and Cluster API objects stay")
    metadata = msgspec.structs.replace(
        asked.metadata, deletion_timestamp=_ANY_MOMENT, finalizers=(*asked.metadata.finalizers, names.FINALIZER)
    )
    draft = Draft(_ANY_MOMENT)
    delete_cluster(draft, replace(snapshot, cluster=msgspec.structs.replace(asked, metadata=metadata)))
    for blocked in draft.blocked:
        if blocked.reason in (Reason.SELF_MANAGED, Reason.IDENTITY_UNKNOWN):
            return denied(text(blocked.reason, blocked.facts))
    machines = len(snapshot.management.machines)
    return (
        allowed(f"{review.name} goes with {counted(machines, 'machine')}, without a drain") if machines else allowed()
    )


# classes


def review_class(review: Review, view: View) -> Verdict:
    if review.operation == "DELETE":
        users = [user for user, _cluster in _users(review.name, view)]
        return allowed(_in_use(review.name, users)) if users else allowed()
    old, new = (_decoded(each or {}, LatticeNodeClass) for each in (review.old_object, review.object))
    if old is None or new is None:
        return allowed()
    moved = [user for user, cluster in _users(review.name, view) if _machine(old, cluster) != _machine(new, cluster)]
    return allowed(_replaced(review.name, moved)) if moved else allowed()


def _users(name: str, view: View) -> Iterator[tuple[str, LatticeCluster]]:
    """The pools that name a class, as cluster/pool, with their cluster."""
    for cluster in view.indexed(names.CLUSTER_KIND, names.BY_CLASS, name):
        for id, pool in _pools(cluster).items():
            if pool.node_class == name:
                yield f"{cluster.name}/{id}", cluster


def _machine(node_class: LatticeNodeClass, cluster: LatticeCluster) -> object:
    """What of a class makes the machines of a cluster."""
    provider = cluster.spec.provider.config.name
    entry = getattr(node_class.spec.providers, provider) if provider else None
    if isinstance(entry, DockerClass):
        return msgspec.structs.replace(entry, memory="", cpus="")
    return entry


def _in_use(name: str, users: list[str]) -> str:
    return (
        f"LatticeNodeClass {name} is used by {counted(len(users), 'pool')} ({listed(users)}): without it they keep "
        "their nodes and can be scaled, and nothing else of them can change"
    )


def _replaced(name: str, users: list[str]) -> str:
    return (
        f"this change of LatticeNodeClass {name} replaces the nodes of {counted(len(users), 'pool')} "
        f"({listed(users)}), one at a time in each"
    )


WEBHOOKS: Final[tuple[Webhook, ...]] = (
    Webhook(
        name="clusters",
        rules=(
            Intercepts(
                names.GROUP, (names.CLUSTER_PLURAL,), operations=("CREATE", "UPDATE", "DELETE"), scope="Cluster"
            ),
        ),
        review=review_cluster,
    ),
    Webhook(
        name="classes",
        rules=(Intercepts(names.GROUP, (names.CLASS_PLURAL,), operations=("UPDATE", "DELETE"), scope="Cluster"),),
        review=review_class,
    ),
)
