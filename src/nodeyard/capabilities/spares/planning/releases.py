"""Release of nodes: cordon, wait for pods or evict them, then undo the claim. Every step is read from the node, so a
restart continues where the last plan stopped.

    in use ──cordon, release note──▶ releasing ──pods gone──▶ spare again, as before the claim
               ◀──needed again, uncordon──┘

The brake counts the patch that writes the release note. Evictions announced in the note are already approved and are
not counted again. If a template sets `evictAfterSeconds` later, its notes are updated first, which the brake counts.

A node that the selector no longer matches leaves without a release: it moves out of management and keeps its record. If
the selector matches again, the template takes the node back unchanged. Moving many nodes out at once counts for the
brake, and the claims that would replace them wait for it. So does detaching them from a template that is deleted.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import (
    Detached,
    Evicted,
    Evicting,
    MovedOut,
    NodesMessage,
    PodsUnknown,
    Released,
    Releasing,
    TakenBack,
    WaitingForCordon,
    WaitingForPods,
)
from nodeyard.capabilities.spares.planning.builder import HARMLESS, Impact, PlanBuilder, Wait
from nodeyard.capabilities.spares.planning.node_metadata import cancel_release, restore, set_spare_label, undo
from nodeyard.capabilities.spares.planning.node_patch import (
    FOREIGN,
    Edit,
    Record,
    ReleaseNote,
    encode,
    is_recorded,
    parse_taint,
    put_taint,
    record_of,
    release_of,
)
from nodeyard.capabilities.spares.planning.partition import count_zones
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, is_ready
from nodeyard.kube.drain import OVERDUE, Handling, eviction_options, given_up_at, handling
from nodeyard.kube.objects import Node, Pod
from nodeyard.plan.builder import NAMED
from nodeyard.plan.model import Action, Disruption, ObjectRef, Verb, Write

SETTLE = timedelta(seconds=5)
"""Delay after the cordon: a pod bound just before it may not be in the cache yet."""

DEFAULT_TAINT = f"{names.SPARE_TAINT}={names.TRUE}:NoSchedule"
"""The spare taint of nodes that were not claimed, for which no record has it."""


def release(builder: PlanBuilder, snapshot: SparesSnapshot, template: Resolved, nodes: Iterable[Node]) -> None:
    """Advance the release of each node by one step."""
    waiting: dict[Reason, list[str]] = {}
    pods: list[str] = []
    for node in nodes:
        wait = _advance(builder, snapshot, template, node)
        if wait is not None:
            builder.waits[node.metadata.name] = wait
            waiting.setdefault(wait.reason, []).append(node.metadata.name)
            pods += (f"{pod} on {node.metadata.name}" for pod in wait.pods)
    for reason, waiting_nodes in waiting.items():
        builder.block_nodes(template.ref, release_message(reason, template.name, pods), waiting_nodes)


def release_message(reason: Reason, template: str, pods: Sequence[str] = (), node: str = "") -> NodesMessage:
    """Return the message of a release that waits."""
    if reason is Reason.SETTLING:
        return WaitingForCordon(template=template, node=node)
    if reason is Reason.PODS_UNKNOWN:
        return PodsUnknown(template=template, node=node)
    return WaitingForPods(template=template, node=node, pods=tuple(pods[:NAMED]), pod_count=len(pods))


def _advance(builder: PlanBuilder, snapshot: SparesSnapshot, template: Resolved, node: Node) -> Wait | None:
    """Plan the next step, or return what it waits for."""
    note = release_of(node)
    if note is None or not node.spec.unschedulable:
        _cordon(builder, template, node)
        return None
    if snapshot.pods is None:
        return Wait(Reason.PODS_UNKNOWN)
    if pods := _blocking_pods(builder, node, snapshot.pods.get(node.metadata.name, ())):
        _evict_when_due(builder, template, node, note, pods)
        return Wait(Reason.WAITING, tuple(f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods))
    if builder.now < note.since + SETTLE:
        builder.wake(note.since + SETTLE)
        return Wait(Reason.SETTLING)
    _finish(builder, template, node, note)
    return None


def blocking_pods(node: Node, pods: Iterable[Pod], now: datetime) -> list[Pod]:
    """Return the pods that must leave first. Pods overdue for deletion on an unreachable node do not block."""
    return [pod for pod in pods if handling(pod, node, None, now) is not Handling.LEAVE]


def _blocking_pods(builder: PlanBuilder, node: Node, pods: Iterable[Pod]) -> list[Pod]:
    blocking = blocking_pods(node, pods, builder.now)
    for pod in blocking:
        if (given_up := given_up_at(pod, node)) is not None:
            builder.wake(given_up + OVERDUE)
    return blocking


def _cordon(builder: PlanBuilder, template: Resolved, node: Node) -> None:
    edit = Edit(node)
    is_ours = not node.spec.unschedulable
    evicts = template.template.spec.release.evict_after_seconds is not None
    note = ReleaseNote(template=template.name, since=builder.now, cordoned=is_ours, evicts=evicts)
    edit.annotations[names.RELEASE] = encode(note)
    edit.unschedulable = True
    impact = Impact(Disruption.RELEASES, template.approval_group("release"))
    builder.edit(edit, template.message(Releasing, node), impact)


def _evict_when_due(
    builder: PlanBuilder, template: Resolved, node: Node, note: ReleaseNote, pods: Sequence[Pod]
) -> None:
    seconds = template.template.spec.release.evict_after_seconds
    if seconds is None:
        return
    due = note.since + timedelta(seconds=seconds)
    group = template.approval_group("release")
    if builder.now < due:
        builder.wake(due)
        if not note.evicts:
            builder.open_groups.add(group)
        return
    if not note.evicts:
        edit = Edit(node)
        edit.annotations[names.RELEASE] = encode(msgspec.structs.replace(note, evicts=True))
        impact = Impact(Disruption.EVICTS, group)
        builder.edit(edit, template.message(Evicting, node), impact)
        return
    for pod in pods:
        if handling(pod, node, None, builder.now) is Handling.EVICT:
            builder.add(_eviction(template, node, pod), Write(body=eviction_options(node)))


def _eviction(template: Resolved, node: Node, pod: Pod) -> Action:
    metadata = pod.metadata
    return Action(
        id=f"pod/{metadata.namespace}/{metadata.name}",
        verb=Verb.EVICT,
        object=ObjectRef(
            api_version="v1", kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid
        ),
        reason=Reason.EVICTED.value,
        facts=Evicted(template=template.name, node=node.metadata.name),
        disruption=Disruption.EVICTS,
        disrupts=(node.metadata.name,),
        already_approved=True,
    )


def _finish(builder: PlanBuilder, template: Resolved, node: Node, note: ReleaseNote) -> None:
    """Undo the claim in one patch. It is not disruptive: the cordon was counted, and the node is empty."""
    edit = Edit(node)
    record = record_of(node)
    if record is not None:
        undo(edit, record)
    if record is None or record.adopted:
        role = names.role_label(template.name)
        if node.metadata.labels.get(role) == names.TRUE:
            edit.drop_label(role)
    edit.labels[names.TEMPLATE_LABEL] = None
    _make_spare(edit, record or Record(template=template.name, spare_taints=(DEFAULT_TAINT,)))
    edit.drop_record()
    edit.drop_annotation(names.RELEASE)
    if note.cordoned:
        edit.unschedulable = False
    builder.edit(edit, template.message(Released, node))


def _make_spare(edit: Edit, record: Record) -> None:
    taints = record.spare_taints
    if not taints and record.spare_label != FOREIGN:
        taints = (DEFAULT_TAINT,)
    for text in taints:
        edit.taints = put_taint(edit.taints, parse_taint(text))
    if record.spare_label == FOREIGN:
        edit.labels[names.SPARE_LABEL] = names.TRUE
    else:
        set_spare_label(edit)


def move_out(builder: PlanBuilder, template: Resolved, nodes: Iterable[Node]) -> list[str]:
    """Move nodes that the selector no longer matches out of management; return the action ids."""
    impact = Impact(Disruption.RELEASES, template.approval_group("disown"))
    message = MovedOut(template=template.name)
    return [builder.edit(_edit_moved_out(template, node), message, impact) for node in nodes]


def _edit_moved_out(template: Resolved, node: Node) -> Edit:
    edit = _edit_detached(node)
    record = record_of(node)
    if record is not None and is_recorded(node, template.name):
        edit.put_record(msgspec.structs.replace(record, disowned_by=template.template.metadata.uid))
    if node.metadata.labels.get(names.OUT_LABEL) != template.name:
        edit.labels[names.OUT_LABEL] = template.name
    if node.metadata.labels.get(names.OUT_ROLE_LABEL) != names.TRUE:
        edit.labels[names.OUT_ROLE_LABEL] = names.TRUE
    return edit


def take_back(
    builder: PlanBuilder, template: Resolved, disowned: Iterable[Node], after: Sequence[tuple[str, ...]]
) -> int:
    """Take back up to `len(after)` nodes that match again, by name, and return how many.

    Each waits for the actions in its entry of `after`.
    """
    uid = template.template.metadata.uid
    matching = [node for node in disowned if _is_disowned_by(node, uid) and template.can_keep(node)]
    returning = sorted(matching, key=lambda node: node.metadata.name)[: len(after)]
    for node, first in zip(returning, after, strict=False):
        edit = Edit(node)
        restore(edit, template)
        edit.drop_label(names.OUT_LABEL)
        edit.drop_label(names.OUT_ROLE_LABEL)
        builder.edit(edit, template.message(TakenBack, node), after=first)
    return len(returning)


def _is_disowned_by(node: Node, uid: str) -> bool:
    record = record_of(node)
    return record is not None and bool(uid) and record.disowned_by == uid


def detach(builder: PlanBuilder, template: Resolved, nodes: Iterable[Node]) -> list[str]:
    """Remove a deleted template's label and record from its nodes; return the action ids. Other settings stay.

    A record is lost for good, so many at once count for the brake.
    """
    message, lost = Detached(template=template.name), Impact(Disruption.RELEASES, template.approval_group("disown"))
    return [
        builder.edit(_edit_detached(node), message, lost if is_recorded(node, template.name) else HARMLESS)
        for node in nodes
    ]


def _edit_detached(node: Node) -> Edit:
    edit = Edit(node)
    cancel_release(edit)
    edit.drop_label(names.TEMPLATE_LABEL)
    edit.drop_record()
    return edit


def choose_surplus(nodes: Sequence[Node], template: Resolved, snapshot: SparesSnapshot, surplus: int) -> list[Node]:
    """Choose the nodes to release.

    Nodes already being released come first, so that a plan does not reverse the previous one; then nodes that are not
    Ready, then empty nodes, then the rest.
    """
    if surplus <= 0:
        return []
    pods = snapshot.pods or {}
    ranks: tuple[list[Node], ...] = ([], [], [], [])
    for node in nodes:
        if names.RELEASE in node.metadata.annotations:
            ranks[0].append(node)
        elif not is_ready(node):
            ranks[1].append(node)
        elif not pods.get(node.metadata.name):
            ranks[2].append(node)
        else:
            ranks[3].append(node)
    used = count_zones(nodes, template)
    ordered = (node for rank in ranks for node in _most_used_zone_first(rank, template, used))
    return list(islice(ordered, surplus))


def _most_used_zone_first(nodes: Iterable[Node], template: Resolved, used: dict[str, int]) -> Iterator[Node]:
    """Yield each node from the zone with the most nodes left. Updates `used`, which the next rank starts from."""
    by_zone: dict[str, list[Node]] = {}
    for node in nodes:
        by_zone.setdefault(template.zone_of(node), []).append(node)
    cursors = dict.fromkeys(by_zone, 0)
    heap = [(-used.get(zone, 0), zone) for zone in by_zone]
    heapq.heapify(heap)
    while heap:
        negative_count, zone = heap[0]
        yield by_zone[zone][cursors[zone]]
        cursors[zone] += 1
        used[zone] = -negative_count - 1
        if cursors[zone] == len(by_zone[zone]):
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (negative_count + 1, zone))
