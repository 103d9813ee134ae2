"""The conditions of a mirrored node.

A mirror of one leaf node has that node's conditions, with Ready=Unknown if the node is silent. A mirror of several has
the five conditions of a healthy kubelet; it is Ready while any leaf node is. When contact is lost only Ready changes,
to Unknown, since nothing is known about the other conditions. Conditions set by others stay. Types copied in addition
to the usual five are recorded, so that they are removed when the leaf removes them.

Ready follows the leaf even if nothing else of the node changes: the root evicts pods from a node that is Unknown and
schedules pods to one that is Ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.leases.inputs import GIVEN_UP
from nodeyard.capabilities.clustertree.messages import (
    CredentialsRejected,
    LeafChanged,
    LeafNodeGone,
    LeafNodeSilent,
    LeafNodesNotReady,
    LeafReady,
    TreeMessage,
    Unreachable,
)
from nodeyard.capabilities.clustertree.planning.availability import READY
from nodeyard.capabilities.clustertree.planning.heartbeat import is_silent
from nodeyard.capabilities.clustertree.planning.mirror import Contact, Mirror, contact
from nodeyard.capabilities.clustertree.planning.models import Mode
from nodeyard.capabilities.clustertree.planning.ownership import leaf_of
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot
from nodeyard.kube.conditions import FALSE, TRUE, UNKNOWN
from nodeyard.kube.objects import Condition
from nodeyard.kube.timestamps import format_rfc3339

_HEALTHY: Final = (
    Condition(
        type="NetworkUnavailable", status=FALSE, reason="RouteCreated", message="The leaf cluster has its own network"
    ),
    Condition(
        type="MemoryPressure",
        status=FALSE,
        reason="KubeletHasSufficientMemory",
        message="status.allocatable shows what is free in the leaf",
    ),
    Condition(
        type="DiskPressure",
        status=FALSE,
        reason="KubeletHasNoDiskPressure",
        message="status.allocatable shows what is free in the leaf",
    ),
    Condition(
        type="PIDPressure",
        status=FALSE,
        reason="KubeletHasSufficientPID",
        message="status.allocatable shows what is free in the leaf",
    ),
)
USUAL: Final = frozenset((READY, *(each.type for each in _HEALTHY)))


@dataclass(frozen=True)
class Conditions:
    stand: tuple[Condition, ...]
    recorded: str
    """Condition types copied from the leaf in addition to the usual five."""


def conditions_of(mirror: Mirror) -> Conditions:
    present, recorded = mirror.present.status.conditions, mirror.annotation(names.MIRRORED_CONDITIONS)
    snapshot, now = mirror.snapshot, mirror.now
    how, ready = contact(snapshot.leaf), mirror.present.condition(READY)
    if how is Contact.LOST:
        return Conditions(merge(present, (ready_while_lost(snapshot, ready),), now), recorded)
    if ready is not None and (how is Contact.KEPT or (snapshot.leaf.health is None and _is_given_up(ready))):
        return Conditions(present, recorded)
    if not mirror.is_single:
        return Conditions(
            merge(present, (_group_ready(snapshot, mirror.placement.name, mirror.members), *_HEALTHY), now, recorded),
            "",
        )
    copied = tuple(_copy(mirror))
    extra = ",".join(sorted({each.type for each in copied} - USUAL))
    return Conditions(merge(present, copied, now, recorded), extra)


def readiness_conditions(
    node: TreeNode, snapshot: TreeSnapshot, now: datetime, members: Sequence[TreeNode] | None = None
) -> tuple[Condition, ...]:
    """Return the conditions of a node of which only Ready follows the leaf, until the node is deleted.

    That is the case if the Cluster is paused or removed, the node waits for approval, or its model is invalid. If the
    members of a group are not known, any ready node of the leaf makes it Ready.
    """
    present, ready = node.status.conditions, node.condition(READY)
    leaf, how = snapshot.leaf, contact(snapshot.leaf)
    if how is Contact.LOST:
        return merge(present, (ready_while_lost(snapshot, ready),), now)
    if ready is None or how is Contact.KEPT or (leaf.health is None and _is_given_up(ready)):
        return present
    if node.metadata.annotations.get(names.NODE_MODE) != Mode.NODE:
        known = tuple(leaf.nodes.values()) if members is None else members
        return merge(present, (_group_ready(snapshot, node.name, known),), now)
    mirrored = leaf.nodes.get(node.name)
    said = None if mirrored is None else mirrored.condition(READY)
    if mirrored is None:
        said = _condition(READY, UNKNOWN, LeafNodeGone(cluster=snapshot.cluster.name, node=node.name))
    elif said is None or is_silent(leaf, node.name, node, now):
        said = _condition(READY, UNKNOWN, LeafNodeSilent(cluster=snapshot.cluster.name, node=node.name))
    return merge(present, (said,), now)


def merge(
    present: tuple[Condition, ...], wanted: Iterable[Condition], now: datetime, recorded: str = ""
) -> tuple[Condition, ...]:
    """Merge wanted conditions into present ones and drop recorded ones that are no longer wanted. Return `present`
    itself if nothing changes."""
    by_type = {each.type: each for each in wanted}
    copied = set(recorded.split(","))
    kept = [each for each in present if each.type in by_type or each.type not in copied]
    result = tuple(_since(each, by_type.pop(each.type), now) if each.type in by_type else each for each in kept)
    result += tuple(_since(None, each, now) for each in by_type.values())
    return present if result == present else result


def ready_while_lost(snapshot: TreeSnapshot, said: Condition | None) -> Condition:
    """Return the Ready condition while contact is lost. The present text is kept for as long as that lasts, also by a
    replica that took over later and has not seen the beginning."""
    health, cluster = snapshot.leaf.health, snapshot.cluster
    last_contact = None if health is None else health.last_contact
    if health is not None and health.is_rejected:
        message: TreeMessage = CredentialsRejected(cluster=cluster.name, given_up=format_rfc3339(health.since))
        if snapshot.leaf.is_other:
            message = LeafChanged(cluster=cluster.name, recorded=leaf_of(cluster), found=snapshot.leaf.uid)
        last_contact = None
    else:
        since = "" if last_contact is None else format_rfc3339(last_contact)
        message = Unreachable(cluster=cluster.name, last_contact=since)
    is_known = said is not None and (said.status, said.reason) == (UNKNOWN, message.reason)
    if said is not None and is_known and last_contact is None:
        return said
    return _condition(READY, UNKNOWN, message)


def _is_given_up(ready: Condition) -> bool:
    """A predecessor gave the leaf up: two good probes must bring it back, not a first list."""
    return ready.status == UNKNOWN and ready.reason in GIVEN_UP


def _group_ready(snapshot: TreeSnapshot, node: str, members: Sequence[TreeNode]) -> Condition:
    cluster = snapshot.cluster.name
    if not any(_is_ready(each) for each in members):
        return _condition(READY, FALSE, LeafNodesNotReady(cluster=cluster, node=node, is_empty=not members))
    return _condition(READY, TRUE, LeafReady(cluster=cluster, node=node))


def _copy(mirror: Mirror) -> Iterator[Condition]:
    """Copy the leaf node's conditions verbatim: the root's API server accepts what the leaf's accepted."""
    silent = mirror.is_silent
    if silent:
        cluster, leaf_node = mirror.snapshot.cluster.name, mirror.placement.model.leaf_node
        yield _condition(READY, UNKNOWN, LeafNodeSilent(cluster=cluster, node=leaf_node))
    for node in mirror.members:
        yield from (each for each in node.status.conditions if not (silent and each.type == READY))


def _condition(type: str, status: str, message: TreeMessage) -> Condition:
    return Condition(type=type, status=status, reason=message.reason, message=message.text())


def _since(present: Condition | None, wanted: Condition, now: datetime) -> Condition:
    """Set lastTransitionTime: the leaf's for a copied condition, otherwise now if the status changed."""
    if wanted.last_transition_time is not None:
        return wanted
    is_same = present is not None and present.status == wanted.status
    since = present.last_transition_time if present is not None and is_same else None
    return msgspec.structs.replace(wanted, last_transition_time=since or now.replace(microsecond=0))


def _is_ready(node: TreeNode) -> bool:
    ready = node.condition(READY)
    return ready is not None and ready.status == TRUE
