"""Labels, annotations and taints that a template sets on a node.

`settle` sets what the template wants and records it; `undo` removes what is recorded and restores what it displaced.
Neither touches settings outside the record, nor values that somebody changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.node_patch import (
    Edit,
    TaintId,
    Taints,
    find_taint,
    format_taint,
    parse_taint,
    put_taint,
    remove_taint,
    taint_id,
)
from nodeyard.capabilities.spares.planning.record import NOTHING_DISPLACED, Displaced, Record
from nodeyard.capabilities.spares.planning.templates import Wanted
from nodeyard.kube.objects import Node, Taint


class _SettledMap(NamedTuple):
    """Changes to one map (labels or annotations), and its part of the record afterwards."""

    changes: dict[str, str | None]
    ours: dict[str, str]
    displaced: dict[str, str]


def is_settled(node: Node, wanted: Wanted) -> bool:
    """Tell whether the node already has what the template wants. Fast path for converged nodes."""
    labels, annotations = node.metadata.labels, node.metadata.annotations
    if names.SPARE_LABEL in labels:
        return False
    for key, value in wanted.labels.items():
        if labels.get(key) != value:
            return False
    for key, value in wanted.annotations.items():
        if annotations.get(key) != value:
            return False
    present = node.spec.taints
    if any(taint.key == names.SPARE_TAINT for taint in present):
        return False
    return all(_has_taint(present, taint) for taint in wanted.taints)


def _has_taint(present: Taints, wanted: Taint) -> bool:
    found = find_taint(present, taint_id(wanted))
    return found is not None and found.value == wanted.value


def settle(edit: Edit, wanted: Wanted, record: Record, *, prune: bool) -> None:
    """Set what is wanted, remove the spare label and taint, and update the record."""
    metadata = edit.node.metadata
    past = record.displaced
    labels = _settle_map(metadata.labels, wanted.labels, record.labels, past.labels, prune=prune)
    annotations = _settle_map(
        metadata.annotations, wanted.annotations, record.annotations, past.annotations, prune=prune
    )
    edit.labels.update(labels.changes)
    edit.annotations.update(annotations.changes)
    edit.drop_label(names.SPARE_LABEL)
    edit.drop_annotation(names.LABELLED)
    ours, displaced = _settle_taints(edit, wanted.taints, record, prune=prune)
    after = msgspec.structs.replace(
        record,
        labels=labels.ours,
        annotations=annotations.ours,
        taints=ours,
        displaced=_displaced(labels.displaced, annotations.displaced, displaced),
    )
    # An empty record is written only to replace an existing one.
    is_empty = not (after.labels or after.annotations or after.taints or after.spare_taints or after.adopted)
    if names.RECORD in metadata.annotations or not is_empty:
        edit.put_record(after)


def _displaced(labels: dict[str, str], annotations: dict[str, str], taints: tuple[str, ...]) -> Displaced:
    if not (labels or annotations or taints):
        return NOTHING_DISPLACED
    return Displaced(labels=labels, annotations=annotations, taints=taints)


def _settle_map(
    current: Mapping[str, str],
    wanted: Mapping[str, str],
    ours: Mapping[str, str],
    displaced: Mapping[str, str],
    *,
    prune: bool,
) -> _SettledMap:
    settled = _SettledMap({}, dict(ours), dict(displaced))
    for key, value in wanted.items():
        present = current.get(key)
        if present == value:
            continue
        settled.changes[key] = value
        if key not in ours and present is not None:
            settled.displaced[key] = present
        settled.ours[key] = value
    if prune:
        for key, value in ours.items():
            if key not in wanted:
                del settled.ours[key]
                before = settled.displaced.pop(key, None)
                if current.get(key) == value:
                    settled.changes[key] = before
    return settled


def _settle_taints(
    edit: Edit, wanted: Taints, record: Record, *, prune: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Edit the taints; return the recorded and the displaced taints afterwards."""
    ours, displaced = _by_id(record.taints), _by_id(record.displaced.taints)
    recorded = dict(ours)
    taints = edit.taints
    if any(taint.key == names.SPARE_TAINT for taint in taints):
        taints = tuple(taint for taint in taints if taint.key != names.SPARE_TAINT)
    for taint in wanted:
        same = taint_id(taint)
        present = find_taint(taints, same)
        if present is not None and present.value == taint.value:
            continue
        if same not in ours and present is not None:
            displaced[same] = present
        recorded[same] = taint
        taints = put_taint(taints, taint)
    if prune:
        kept = {taint_id(taint) for taint in wanted}
        for same, taint in ours.items():
            if same not in kept:
                del recorded[same]
                taints = _restore_taint(taints, taint, displaced.pop(same, None))
    edit.taints = taints
    return tuple(map(format_taint, recorded.values())), tuple(map(format_taint, displaced.values()))


def _restore_taint(taints: Taints, ours: Taint, before: Taint | None) -> Taints:
    """Replace our taint by the one that it displaced. A taint whose value somebody changed stays."""
    present = find_taint(taints, taint_id(ours))
    if present is None or present.value != ours.value:
        return taints
    return remove_taint(taints, taint_id(ours)) if before is None else put_taint(taints, before)


def undo(edit: Edit, record: Record) -> None:
    """Remove the recorded settings and restore what they displaced."""
    metadata, past = edit.node.metadata, record.displaced
    for key, value in record.labels.items():
        if metadata.labels.get(key) == value:
            edit.labels[key] = past.labels.get(key)
    for key, value in record.annotations.items():
        if metadata.annotations.get(key) == value:
            edit.annotations[key] = past.annotations.get(key)
    displaced = _by_id(past.taints)
    for same, taint in _by_id(record.taints).items():
        edit.taints = _restore_taint(edit.taints, taint, displaced.get(same))


def _by_id(texts: tuple[str, ...]) -> dict[TaintId, Taint]:
    return {taint_id(taint): taint for taint in map(parse_taint, texts)}
