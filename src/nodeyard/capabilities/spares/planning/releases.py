"""Nodes are given back: cordoned, emptied, undone. Each step is read off the node, so any of them can be the last
before a crash, and the next plan goes on from there.

    in use ──cordon, note when──▶ leaving ──pods gone──▶ spare again, as it was before the claim
               ◀──wanted after all, uncordoned──┘

The note is also what the brake has let pass: evictions that it announces are not counted again, however the pods come
and go. A template that comes to evict only later has its notes say so first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.draft import Disturbance, Draft
from nodeyard.capabilities.spares.planning.edits import Edit
from nodeyard.capabilities.spares.planning.labels import mark
from nodeyard.capabilities.spares.planning.record import FOREIGN, Record, ReleaseNote, encode, record_of, release_of
from nodeyard.capabilities.spares.planning.settings import undo
from nodeyard.capabilities.spares.planning.taints import parse, put
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.objects import Node, Pod
from nodeyard.plan.model import Action, Disruption, ObjectRef, Verb, Write

SETTLE = timedelta(seconds=5)
"""A pod may have been bound just before the cordon and not have reached our cache yet; so long it may take."""

DEFAULT_TAINT = f"{names.SPARE_TAINT}={names.TRUE}:NoSchedule"
"""For nodes that were not claimed by us, of which no record says what their spare taint was."""


def release(draft: Draft, snapshot: SparesSnapshot, template: Resolved, victims: Iterable[Node]) -> None:
    """Take each of these one step further on its way back."""
    waiting: dict[Reason, list[str]] = {}
    for node in victims:
        reason = _advance(draft, snapshot, template, node)
        if reason is not None:
            draft.waits[node.metadata.name] = reason
            waiting.setdefault(reason, []).append(node.metadata.name)
    for reason, nodes in waiting.items():
        draft.block_nodes(template.ref, reason, nodes, template=template.name)


def _advance(draft: Draft, snapshot: SparesSnapshot, template: Resolved, node: Node) -> Reason | None:
    """The next step, or what it waits for."""
    note = release_of(node)
    if note is None or not node.spec.unschedulable:
        _cordon(draft, template, node)
        return None
    if snapshot.pods is None:
        return Reason.PODS_UNKNOWN
    if pods := snapshot.pods.get(node.metadata.name):
        _evict_when_due(draft, template, node, note, pods)
        return Reason.WAITING
    if draft.now < note.since + SETTLE:
        draft.wake(note.since + SETTLE)
        return Reason.SETTLING
    _give_back(draft, template, node, note)
    return None


def _cordon(draft: Draft, template: Resolved, node: Node) -> None:
    edit = Edit(node)
    is_ours = not node.spec.unschedulable
    evicts = template.template.spec.release.evict_after_seconds is not None
    note = ReleaseNote(template=template.name, since=draft.now, cordoned=is_ours, evicts=evicts)
    edit.annotations[names.RELEASE] = encode(note)
    edit.unschedulable = True
    draft.edit(edit, Reason.RELEASING, template.facts(node), Disturbance(Disruption.RELEASES, _undertaking(template)))


def _undertaking(template: Resolved) -> str:
    """All that one version of a template gives back; another version has to be approved anew."""
    metadata = template.template.metadata
    return f"release {template.name} {metadata.uid} {metadata.generation}"


def _evict_when_due(draft: Draft, template: Resolved, node: Node, note: ReleaseNote, pods: Sequence[Pod]) -> None:
    seconds = template.template.spec.release.evict_after_seconds
    if seconds is None:
        return
    due = note.since + timedelta(seconds=seconds)
    if draft.now < due:
        draft.wake(due)
        return
    if not note.evicts:
        edit = Edit(node)
        edit.annotations[names.RELEASE] = encode(msgspec.structs.replace(note, evicts=True))
        draft.edit(edit, Reason.EVICTING, template.facts(node), Disturbance(Disruption.EVICTS, _undertaking(template)))
        return
    for pod in pods:
        if pod.metadata.deletion_timestamp is None:
            draft.add(_eviction(template, node, pod), Write())


def _eviction(template: Resolved, node: Node, pod: Pod) -> Action:
    metadata = pod.metadata
    return Action(
        id=f"pod/{metadata.namespace}/{metadata.name}",
        verb=Verb.EVICT,
        object=ObjectRef(
            api_version="v1", kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid
        ),
        reason=Reason.EVICTED.value,
        facts={"template": template.name, "node": node.metadata.name},
        disruption=Disruption.EVICTS,
        disrupts=(node.metadata.name,),
        is_granted=True,
    )


def _give_back(draft: Draft, template: Resolved, node: Node, note: ReleaseNote) -> None:
    """All in one patch. Not counted as disruptive: the cordon was, and nothing runs here any more."""
    edit = Edit(node)
    record = record_of(node)
    if record is not None:
        undo(edit, record)
    else:
        _drop_role(edit, template)
    edit.labels[names.TEMPLATE_LABEL] = None
    _make_spare(edit, record or Record(template=template.name, spare_taints=(DEFAULT_TAINT,)))
    edit.drop_annotation(names.RECORD)
    edit.drop_annotation(names.RELEASE)
    if note.cordoned:
        edit.unschedulable = False
    draft.edit(edit, Reason.RELEASED, template.facts(node))


def _drop_role(edit: Edit, template: Resolved) -> None:
    role = names.role_label(template.name)
    if edit.node.metadata.labels.get(role) == names.TRUE:
        edit.drop_label(role)


def _make_spare(edit: Edit, record: Record) -> None:
    taints = record.spare_taints
    if not taints and record.spare_label != FOREIGN:
        taints = (DEFAULT_TAINT,)
    for text in taints:
        edit.taints = put(edit.taints, parse(text))
    if record.spare_label == FOREIGN:
        edit.labels[names.SPARE_LABEL] = names.TRUE
    else:
        mark(edit)
