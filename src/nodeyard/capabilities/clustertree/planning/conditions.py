"""The conditions of a mirrored node.

One that mirrors a leaf node has that node's conditions, and Ready=Unknown where it has fallen silent. One that mirrors
several has the five of a healthy kubelet, Ready as long as any leaf node is. When contact is lost only Ready is spoken
of, since nobody knows about the rest: it is Unknown, which is not False. Conditions that others set stay, and those
copied beyond the usual five are recorded, so that they go when the leaf's do.

Also a node that is otherwise left as it is becomes Ready again when the leaf is back: the root evicts from one that is
Unknown, whoever said so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.messages import text
from nodeyard.capabilities.clustertree.planning.availability import READY
from nodeyard.capabilities.clustertree.planning.contact import Contact, contact
from nodeyard.capabilities.clustertree.planning.mirror import Mirror
from nodeyard.capabilities.clustertree.planning.models import Mode
from nodeyard.capabilities.clustertree.planning.silence import is_silent
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot
from nodeyard.kube.conditions import FALSE, TRUE, UNKNOWN
from nodeyard.kube.json import Object
from nodeyard.kube.moments import written
from nodeyard.kube.objects import Condition

_HEALTHY: Final = (
    Condition(
        type="NetworkUnavailable", status=FALSE, reason="RouteCreated", message="The leaf cluster has its own network"
    ),
    Condition(
        type="MemoryPressure",
        status=FALSE,
        reason="KubeletHasSufficientMemory",
        message="What is free stands in the node's resources",
    ),
    Condition(
        type="DiskPressure",
        status=FALSE,
        reason="KubeletHasNoDiskPressure",
        message="What is free stands in the node's resources",
    ),
    Condition(
        type="PIDPressure",
        status=FALSE,
        reason="KubeletHasSufficientPID",
        message="What is free stands in the node's resources",
    ),
)
USUAL: Final = frozenset((READY, *(each.type for each in _HEALTHY)))


@dataclass(frozen=True)
class Conditions:
    stand: tuple[Condition, ...]
    recorded: str
    """The types, beyond the usual, that were copied from the leaf."""


def conditions_of(mirror: Mirror) -> Conditions:
    present, recorded = mirror.present.status.conditions, mirror.said(names.MIRRORED_CONDITIONS)
    snapshot, now = mirror.snapshot, mirror.now
    how, ready = contact(snapshot.leaf), mirror.present.condition(READY)
    if how is Contact.LOST:
        return Conditions(merged(present, (lost(snapshot, ready),), now), recorded)
    if ready is not None and (how is Contact.KEPT or (snapshot.leaf.finding is None and _is_given_up(ready))):
        return Conditions(present, recorded)
    if not mirror.is_single:
        return Conditions(merged(present, (_group_ready(mirror), *_HEALTHY), now, recorded), "")
    copied = tuple(_copied(mirror))
    extra = ",".join(sorted({each.type for each in copied} - USUAL))
    return Conditions(merged(present, copied, now, recorded), extra)


def unseen(node: TreeNode, snapshot: TreeSnapshot, now: datetime) -> tuple[Condition, ...]:
    """Of a node that only the line tells of: the leaf has not been listed, its model is faulty, or it is to go."""
    present, ready = node.status.conditions, node.condition(READY)
    if contact(snapshot.leaf) is Contact.LOST:
        return merged(present, (lost(snapshot, ready),), now)
    well = None if ready is None or ready.status != UNKNOWN else _well_again(node, ready, snapshot, now)
    return present if well is None else merged(present, (well,), now)


def gone(node: TreeNode, snapshot: TreeSnapshot, now: datetime) -> tuple[Condition, ...]:
    """Of a node whose leaf node the leaf does not have any more, for as long as it may not be removed."""
    if contact(snapshot.leaf) is Contact.LOST:
        return unseen(node, snapshot, now)
    facts = {"cluster": snapshot.cluster.name, "node": node.name}
    ready = _condition(READY, UNKNOWN, Reason.LEAF_NODE_GONE, facts)
    return merged(node.status.conditions, (ready,), now)


def merged(
    present: tuple[Condition, ...], wanted: Iterable[Condition], now: datetime, recorded: str = ""
) -> tuple[Condition, ...]:
    """These over those that are there, without the recorded ones that are not wanted; the same where nothing moves."""
    ours = {each.type: each for each in wanted}
    copied = set(recorded.split(","))
    kept = [each for each in present if each.type in ours or each.type not in copied]
    result = tuple(_since(each, ours.pop(each.type), now) if each.type in ours else each for each in kept)
    result += tuple(_since(None, each, now) for each in ours.values())
    return present if result == present else result


def lost(snapshot: TreeSnapshot, said: Condition | None) -> Condition:
    """Ready, when nobody answers, or nobody lets us in. What was said of it stays while that lasts, also when another
    replica takes over, or the same one after a restart, who has not been there when it began."""
    finding = snapshot.leaf.finding
    facts: Object = {"cluster": snapshot.cluster.name}
    is_rejected = finding is not None and finding.is_rejected
    reason = Reason.CREDENTIALS_REJECTED if is_rejected else Reason.UNREACHABLE
    last_contact = None if finding is None else finding.last_contact
    is_known = said is not None and (said.status, said.reason) == (UNKNOWN, reason.value)
    if said is not None and is_known and (is_rejected or last_contact is None):
        return said
    if finding is not None and is_rejected:
        facts["givenUp"] = written(finding.since)
    elif last_contact is not None:
        facts["lastContact"] = written(last_contact)
    return _condition(READY, UNKNOWN, reason, facts)


def _is_given_up(ready: Condition) -> bool:
    """Its leaf was, by whoever looked after it before: two good probes have to bring it back, not a first list."""
    return ready.status == UNKNOWN and ready.reason in (Reason.UNREACHABLE, Reason.CREDENTIALS_REJECTED)


def _well_again(node: TreeNode, said: Condition, snapshot: TreeSnapshot, now: datetime) -> Condition | None:
    """Ready, where the leaf says that what the node mirrors is; None where it does not, or where that is not known."""
    leaf = snapshot.leaf
    if contact(leaf) is not Contact.BY_LEAF or (leaf.finding is None and _is_given_up(said)):
        return None
    if node.metadata.annotations.get(names.NODE_MODE) == Mode.NODE:
        mirrored = leaf.nodes.get(node.name)
        is_well = mirrored is not None and _is_ready(mirrored) and not is_silent(leaf, node.name, node, now)
        return mirrored.condition(READY) if mirrored is not None and is_well else None
    if not any(_is_ready(each) for each in leaf.nodes.values()):
        return None
    return _condition(READY, TRUE, Reason.LEAF_READY, {"cluster": snapshot.cluster.name, "node": node.name})


def _group_ready(mirror: Mirror) -> Condition:
    members = mirror.members
    facts: Object = {
        "cluster": mirror.snapshot.cluster.name,
        "node": mirror.placement.name,
        "isEmpty": not members,
    }
    if members and not any(_is_ready(node) for node in members):
        return _condition(READY, FALSE, Reason.LEAF_NODES_NOT_READY, facts)
    return _condition(READY, TRUE, Reason.LEAF_READY, facts)


def _copied(mirror: Mirror) -> Iterator[Condition]:
    """The leaf node's; it is read as it is, since the server of the root takes whatever that of the leaf took."""
    silent = mirror.is_silent
    if silent:
        facts = {"cluster": mirror.snapshot.cluster.name, "node": mirror.placement.model.leaf_node}
        yield _condition(READY, UNKNOWN, Reason.LEAF_NODE_SILENT, facts)
    for node in mirror.members:
        yield from (each for each in node.status.conditions if not (silent and each.type == READY))


def _condition(type: str, status: str, reason: Reason, facts: Object) -> Condition:
    return Condition(type=type, status=status, reason=reason.value, message=text(reason.value, facts))


def _since(present: Condition | None, wanted: Condition, now: datetime) -> Condition:
    """With the time of its last change: the leaf's where it comes from there, else ours, when the status moves."""
    if wanted.last_transition_time is not None:
        return wanted
    is_same = present is not None and present.status == wanted.status
    since = present.last_transition_time if present is not None and is_same else None
    return msgspec.structs.replace(wanted, last_transition_time=since or now.replace(microsecond=0))


def _is_ready(node: TreeNode) -> bool:
    ready = node.condition(READY)
    return ready is not None and ready.status == TRUE
