"""Settings on a node: what a template wants is put there and recorded, what it no longer wants is taken back.

`settle` brings a node to the described state; `undo` takes everything of ours off again and puts back what it
displaced. Both leave alone what is in no record, and what somebody has changed since we set it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning import taints as taint_text
from nodeyard.capabilities.spares.planning.edits import Edit
from nodeyard.capabilities.spares.planning.record import NOTHING_DISPLACED, Displaced, Record, encode
from nodeyard.capabilities.spares.planning.taints import Identity, Taints, identity
from nodeyard.capabilities.spares.planning.templates import Wanted
from nodeyard.kube.objects import Node, Taint


class _Settled(NamedTuple):
    """One map of settings: what to change, and what the record says of it then."""

    changes: dict[str, str | None]
    ours: dict[str, str]
    displaced: dict[str, str]


def is_settled(node: Node, wanted: Wanted) -> bool:
    """Whether the node is as described. The quick answer for the many that are."""
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
    found = taint_text.find(present, identity(wanted))
    return found is not None and found.value == wanted.value


def settle(edit: Edit, wanted: Wanted, record: Record, *, prune: bool) -> None:
    """Bring the node to what is wanted; the record goes with it."""
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
    text = encode(after)
    if metadata.annotations.get(names.RECORD) != text and _says_something(after, before=metadata.annotations):
        edit.annotations[names.RECORD] = text


def _displaced(labels: dict[str, str], annotations: dict[str, str], taints: tuple[str, ...]) -> Displaced:
    if not (labels or annotations or taints):
        return NOTHING_DISPLACED
    return Displaced(labels=labels, annotations=annotations, taints=taints)


def _says_something(record: Record, before: Mapping[str, str]) -> bool:
    """An empty record is written only over another one: a node that was born as described gets none."""
    return names.RECORD in before or bool(record.labels or record.annotations or record.taints or record.spare_taints)


def _settle_map(
    current: Mapping[str, str],
    wanted: Mapping[str, str],
    ours: Mapping[str, str],
    displaced: Mapping[str, str],
    *,
    prune: bool,
) -> _Settled:
    settled = _Settled({}, dict(ours), dict(displaced))
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
                _take_back(settled, key, is_untouched=current.get(key) == value)
    return settled


def _take_back(settled: _Settled, key: str, *, is_untouched: bool) -> None:
    del settled.ours[key]
    before = settled.displaced.pop(key, None)
    if is_untouched:
        settled.changes[key] = before


def _settle_taints(
    edit: Edit, wanted: Taints, record: Record, *, prune: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The record's taints and displaced taints after the edit."""
    ours, displaced = _by_identity(record.taints), _by_identity(record.displaced.taints)
    recorded = dict(ours)
    taints = edit.taints
    if any(taint.key == names.SPARE_TAINT for taint in taints):
        taints = tuple(taint for taint in taints if taint.key != names.SPARE_TAINT)
    for taint in wanted:
        same = identity(taint)
        present = taint_text.find(taints, same)
        if present is not None and present.value == taint.value:
            continue
        if same not in ours and present is not None:
            displaced[same] = present
        recorded[same] = taint
        taints = taint_text.put(taints, taint)
    if prune:
        kept = {identity(taint) for taint in wanted}
        for same, taint in ours.items():
            if same not in kept:
                del recorded[same]
                taints = _restore_taint(taints, taint, displaced.pop(same, None))
    edit.taints = taints
    return tuple(map(taint_text.render, recorded.values())), tuple(map(taint_text.render, displaced.values()))


def _restore_taint(taints: Taints, ours: Taint, before: Taint | None) -> Taints:
    """Ours gone and what it displaced back; one that somebody changed since is theirs and stays."""
    present = taint_text.find(taints, identity(ours))
    if present is None or present.value != ours.value:
        return taints
    return taint_text.without(taints, identity(ours)) if before is None else taint_text.put(taints, before)


def undo(edit: Edit, record: Record) -> None:
    """Take off what the record says is ours, and put back what it displaced."""
    metadata, past = edit.node.metadata, record.displaced
    for key, value in record.labels.items():
        if metadata.labels.get(key) == value:
            edit.labels[key] = past.labels.get(key)
    for key, value in record.annotations.items():
        if metadata.annotations.get(key) == value:
            edit.annotations[key] = past.annotations.get(key)
    displaced = _by_identity(past.taints)
    for same, taint in _by_identity(record.taints).items():
        edit.taints = _restore_taint(edit.taints, taint, displaced.get(same))


def _by_identity(texts: tuple[str, ...]) -> dict[Identity, Taint]:
    return {identity(taint): taint for taint in map(taint_text.parse, texts)}
