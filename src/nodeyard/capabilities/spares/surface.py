"""Spares on the dashboard: the template and state of a node, templates that lack nodes, and releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.allocation import LISTED
from nodeyard.capabilities.spares.planning.node_patch import ReleaseNote, release_of
from nodeyard.capabilities.spares.planning.releases import DEFAULT_TAINT, blocking_pods, release_message
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.report.status import SUFFICIENT
from nodeyard.capabilities.spares.snapshot import is_spare, template_of
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.kube.drain import is_workload
from nodeyard.kube.names import PAUSED
from nodeyard.kube.objects import Node, Pod
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.plan.message import Message
from nodeyard.plan.model import Decision, ObjectRef
from nodeyard.runtime.capability import View
from nodeyard.runtime.surface import (
    Attention,
    Blocker,
    Remedy,
    Rollout,
    Severity,
    Surface,
    Tile,
    TileState,
    patch_command,
    rungs,
)

_CHOSEN: Final = frozenset({Reason.PAUSED.value, Reason.DRY_RUN.value})
"""Why a template lacks nodes because its user wants it so."""


def tile(view: View, name: str) -> Tile | None:
    node: Node | None = view.get("Node", name)
    if node is None:
        return None
    if (template := template_of(node)) is not None:
        note = release_of(node)
        if note is not None:
            return Tile(state=TileState.RELEASING, since=note.since, template=template, hue=template)
        return Tile(state=TileState.CLAIMED, template=template, hue=template)
    return Tile(state=TileState.SPARE) if is_spare(node) else None


def attention(view: View, _now: datetime) -> Iterator[Attention]:
    """Yield the templates that lack nodes, as their condition Sufficient says."""
    templates: Sequence[NodeTemplate] = view.all(names.KIND)
    for template in templates:
        for condition in template.status.conditions:
            if condition.type == SUFFICIENT and condition.status == "False" and condition.reason not in _CHOSEN:
                has_none = template.status.current_nodes == 0
                yield Attention(
                    kind="Shortage",
                    severity=Severity.CRITICAL if has_none else Severity.WARNING,
                    object=Resolved(template).ref,
                    reason=condition.reason,
                    message=condition.message,
                    since=condition.last_transition_time,
                    link={"view": "yard", "group": "template", "template": template.name},
                )


# releases


def rollouts(view: View, now: datetime) -> Iterator[Rollout]:
    """Yield the releases, one row per template."""
    releasing: dict[str, list[tuple[Node, ReleaseNote]]] = {}
    nodes: Sequence[Node] = view.all("Node")
    for node in nodes:
        note = release_of(node) if names.RELEASE in node.metadata.annotations else None
        if note is not None and (owner := template_of(node)) is not None:
            releasing.setdefault(owner, []).append((node, note))
    for owner, found in sorted(releasing.items()):
        template: NodeTemplate | None = view.get(names.KIND, owner)
        if template is not None:
            yield _release(view, template, found, now)


def _release(view: View, template: NodeTemplate, found: Sequence[tuple[Node, ReleaseNote]], now: datetime) -> Rollout:
    is_known = view.is_synced("Pod")
    waiting = [
        (node, note, pod)
        for node, note in found
        if is_known
        for pod in blocking_pods(node, _workload(view, node.metadata.name), now)
    ]
    busy = {node.metadata.name for node, _, _ in waiting}
    since, seconds = min(note.since for _, note in found), template.spec.release.evict_after_seconds
    pods = [f"{pod.metadata.namespace}/{pod.metadata.name}" for _, _, pod in waiting]
    message = release_message(Reason.WAITING if pods else Reason.SETTLING, template.name, pods)
    message = msgspec.structs.replace(message, nodes=tuple(sorted(busy or {node.metadata.name for node, _ in found})))
    due = None if seconds is None else since + timedelta(seconds=seconds)
    step = "The nodes become spare again."
    if pods:
        step = "The pods have to leave by themselves: spec.release.evictAfterSeconds is not set."
        if due is not None:
            at = format_rfc3339(due)
            step = f"Pods are evicted from {at} on." if now < due else "Evictions are retried within their budgets."
    return Rollout(
        capability=names.CAPABILITY,
        kind="Drain",
        object=Resolved(template).ref,
        done=len(found) - len(busy) if is_known else 0,
        total=len(found),
        state="Releasing",
        next=step,
        message=message.text(),
        since=since,
        blockers=tuple(_blocker(template, *each) for each in waiting[:LISTED]),
    )


def _workload(view: View, node: str) -> list[Pod]:
    return [pod for pod in view.indexed("Pod", names.PODS_BY_NODE, node) if is_workload(pod)]


def _blocker(template: NodeTemplate, node: Node, note: ReleaseNote, pod: Pod) -> Blocker:
    metadata, owner = pod.metadata, pod.metadata.controller
    held_by = "no controller recreates it" if owner is None else f"it belongs to {owner.kind} {owner.name}"
    ways = [f"kubectl delete pod {metadata.name} --namespace {metadata.namespace}"]
    if template.spec.release.evict_after_seconds is None:
        patch = {"spec": {"release": {"evictAfterSeconds": 0}}}
        ways.append(patch_command(names.PLURAL, template.name, patch))
    return Blocker(
        object=ObjectRef(
            api_version="v1", kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid
        ),
        reason=Reason.WAITING.value,
        message=f"Runs on {node.metadata.name}; {held_by}",
        since=metadata.deletion_timestamp or note.since,
        ways_out=(*ways, f"Raise spec.nodes of {template.name} to keep the node."),
    )


# why

LADDERS: Final = {
    names.KIND: rungs(
        (Reason.INVALID, "Its spec is invalid"),
        (Reason.PAUSED, "It is paused"),
        (Reason.DRY_RUN, "It only does a dry run"),
        (Reason.DELETING, "It is being deleted"),
        (Reason.SURPLUS, "It has more nodes than wanted and retains them"),
        (Reason.WAITING, "A release waits for pods"),
        (Reason.SETTLING, "A release waits for pods bound before the cordon"),
        (Reason.PODS_UNKNOWN, "A release waits for the cache of pods"),
        (Reason.RELEASING, "Surplus nodes are released"),
        (Reason.SUFFICIENT, "Enough nodes are claimed"),
        (Reason.HIGH_PRIORITY, "A template with higher priority lacks nodes"),
        (Reason.NO_SPARE, "No spare matches"),
    ),
}


def remedies(view: View, decision: Decision) -> list[Remedy]:
    """Return what would change a decision about a template or node, with the command if its values are known."""
    return [
        Remedy(message=each.text(), command=_command(view, decision.object, each)) for each in decision.would_change
    ]


def _command(view: View, ref: ObjectRef, remedy: Message) -> str:
    template = ref.name if ref.kind == names.KIND else getattr(remedy, "template", "")
    if remedy.reason == Reason.LOWER_NODES and ref.kind == "Node":
        node: Node | None = view.get("Node", ref.name)
        template = (template_of(node) if node is not None else None) or ""
    found: NodeTemplate | None = view.get(names.KIND, template) if template else None
    if ref.kind == "Node":
        match remedy.reason:
            case Reason.UNCORDON:
                return f"kubectl uncordon {ref.name}"
            case Reason.EMPTY_NODE:
                return f"kubectl drain {ref.name} --ignore-daemonsets --delete-emptydir-data"
            case Reason.ADD_SPARE_TAINT:
                return f"kubectl taint node {ref.name} {DEFAULT_TAINT}"
    if found is None:
        return ""
    match remedy.reason:
        case Reason.RAISE_NODES:
            return patch_command(names.PLURAL, template, {"spec": {"nodes": found.spec.nodes + 1}})
        case Reason.LOWER_NODES:
            patch = {"spec": {"nodes": max(0, found.spec.nodes - 1), "releasePolicy": "Release"}}
            return patch_command(names.PLURAL, template, patch)
        case Reason.SET_RELEASE:
            return patch_command(names.PLURAL, template, {"spec": {"releasePolicy": "Release"}})
        case Reason.END_DRY_RUN:
            spelled = {} if found.spec.dry_run_spelled is None else {"dry-run": False}
            return patch_command(names.PLURAL, template, {"spec": {"dryRun": False, **spelled}})
        case Reason.END_PAUSE:
            patch = {"spec": {"paused": False}, "metadata": {"annotations": {PAUSED: None}}}
            return patch_command(names.PLURAL, template, patch)
        case Reason.RAISE_PRIORITY:
            return patch_command(names.PLURAL, template, {"spec": {"priority": found.spec.priority + 1}})
    return ""


SURFACE: Final = Surface(
    tile=tile,
    attention=attention,
    rollouts=rollouts,
    ladders=LADDERS,
    remedies=remedies,
)
