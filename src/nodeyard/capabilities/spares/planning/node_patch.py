"""One merge patch per node and plan, and the records on the node that come with it.

A planning step collects its changes in an `Edit`; `Edit.to_patch` turns them into a single merge patch.

`spec.taints` is an atomic list, so a patch that contains it replaces the whole list. Patches that change taints, the
owner's label or the cordon therefore carry the resourceVersion of the node that was planned with. If somebody adds a
taint or cordons the node meanwhile, the write fails with a conflict and the plan is made again.

Nodeyard's own annotations on a node are the ownership record and the release note. The record lists which labels,
annotations and taints Nodeyard set and what they displaced. It is written in the same patch as these settings, so the
two never disagree. Settings that are in no record belong to others and stay. Taints are recorded as kubectl writes
them, `key=value:Effect`.

A record is valid only with its digest in the label `RECORD_DIGEST`. The annotation alone proves nothing: a kubelet may
annotate its own node. The admission plugin NodeRestriction denies kubelets every label of that domain. A forged record
could gain only labels of the same domain, so both rely on the same plugin.
https://github.com/kubernetes/kubernetes/blob/v1.36.0/plugin/pkg/admission/noderestriction/admission.go
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.templates import Wanted
from nodeyard.kube.json import Json, Object
from nodeyard.kube.objects import Node, Taint
from nodeyard.kube.short_cache import cache_short
from nodeyard.kube.taints import evicts
from nodeyard.plan.model import FieldChange, ObjectRef

# the record and the release note


OURS = "ours"
FOREIGN = "foreign"
DIGEST_CHARACTERS = 40
"""160 bits, enough against second preimages; a label value has at most 63 characters."""


class _Note(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of the annotations' JSON: empty fields are omitted."""


class Displaced(_Note, frozen=True):
    """Values that Nodeyard's settings replaced, restored on release."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: tuple[str, ...] = ()


NOTHING_DISPLACED = Displaced()


class Record(_Note, frozen=True):
    template: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: tuple[str, ...] = ()
    displaced: Displaced = NOTHING_DISPLACED
    spare_taints: tuple[str, ...] = ()
    """The spare taints at the claim, restored on release."""
    adopted: bool = False
    """The node had the owner's label and was not claimed; it gets no restricted labels by default."""
    disowned_by: str = ""
    """The uid of the template that moved the node out of management. That template takes the node back when its
    selector matches again; another template of the same name does not."""
    spare_label: str = ""
    """Owner of the spare label at the claim: `ours`, `foreign`, or empty without the label."""


class ReleaseNote(_Note, frozen=True):
    template: str
    since: datetime
    cordoned: bool = False
    """Nodeyard set the cordon and removes it again."""
    evicts: bool = False
    """The release evicts pods. The brake approves or holds the patch that writes this; the single evictions are then
    already approved."""


_RECORD = msgspec.json.Decoder(Record)
_RELEASE = msgspec.json.Decoder(ReleaseNote)
_ENCODER = msgspec.json.Encoder(order="deterministic")


def encode(note: Record | ReleaseNote) -> str:
    return _ENCODER.encode(note).decode()


def record_of(node: Node) -> Record | None:
    """Decode the record; None if it is absent, malformed, or its digest label does not match."""
    text = node.metadata.annotations.get(names.RECORD)
    if text is None or node.metadata.labels.get(names.RECORD_DIGEST) != digest_of(text):
        return None
    return _decode_record(text)


@cache_short(4096)
def digest_of(text: str) -> str:
    """Return the value of the digest label for a record."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]


@cache_short(4096)
def _decode_record(text: str) -> Record | None:
    """Decode with a cache: nodes with the same claim have the same record."""
    try:
        return _RECORD.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def release_of(node: Node) -> ReleaseNote | None:
    text = node.metadata.annotations.get(names.RELEASE)
    if text is None:
        return None
    try:
        return _RELEASE.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def is_recorded(node: Node, template: str) -> bool:
    """Tell whether the template claimed or adopted the node; the owner's label alone does not count."""
    record = record_of(node)
    return record is not None and record.template == template


# taints


Taints = tuple[Taint, ...]
TaintId = tuple[str, str]
"""Key and effect, which identify a taint on a node."""


def taint_id(taint: Taint) -> TaintId:
    return taint.key, taint.effect


def format_taint(taint: Taint) -> str:
    """Format a taint as kubectl does: `key=value:Effect`, or `key:Effect` without a value."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def parse_taint(text: str) -> Taint:
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return Taint(key=key, value=value, effect=effect)


def find_taint(taints: Taints, wanted: TaintId) -> Taint | None:
    return next((taint for taint in taints if (taint.key, taint.effect) == wanted), None)


def put_taint(taints: Taints, taint: Taint) -> Taints:
    """Replace the taint with the same key and effect, or append."""
    same = taint_id(taint)
    if any(taint_id(each) == same for each in taints):
        return tuple(taint if taint_id(each) == same else each for each in taints)
    return (*taints, taint)


def remove_taint(taints: Taints, removed: TaintId) -> Taints:
    return tuple(taint for taint in taints if taint_id(taint) != removed)


def spare_taints(node: Node) -> Taints:
    """Return the spare taints, matched by key only as nyallocator does: the kubelet chooses value and effect."""
    return tuple(taint for taint in node.spec.taints if taint.key == names.SPARE_TAINT)


def _taint_to_wire(taint: Taint) -> Object:
    wire: Object = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        wire["value"] = taint.value
    if taint.time_added is not None:
        wire["timeAdded"] = taint.time_added.isoformat(timespec="seconds").replace("+00:00", "Z")
    return wire


# patches


class NodePatch(NamedTuple):
    """A merge patch and its diff. Nodes that look alike share one."""

    body: Object
    diff: tuple[FieldChange, ...]
    is_conditional: bool
    """The write carries the node's resourceVersion (optimistic locking)."""
    evicts: bool = False
    """The patch adds a NoExecute taint that may evict pods."""


class Edit:
    """Changes to one node. A label or annotation set to None is removed."""

    __slots__ = ("annotations", "labels", "node", "taints", "unschedulable")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.labels: dict[str, str | None] = {}
        self.annotations: dict[str, str | None] = {}
        self.taints: Taints = node.spec.taints
        self.unschedulable = node.spec.unschedulable

    def drop_label(self, key: str) -> None:
        if key in self.node.metadata.labels:
            self.labels[key] = None

    def drop_annotation(self, key: str) -> None:
        if key in self.node.metadata.annotations:
            self.annotations[key] = None
        else:
            self.annotations.pop(key, None)

    def put_record(self, record: Record) -> None:
        """Write the record and its digest label unless the node already has both."""
        text = encode(record)
        digest = digest_of(text)
        metadata = self.node.metadata
        if (metadata.annotations.get(names.RECORD), metadata.labels.get(names.RECORD_DIGEST)) != (text, digest):
            self.annotations[names.RECORD] = text
            self.labels[names.RECORD_DIGEST] = digest

    def drop_record(self) -> None:
        self.drop_annotation(names.RECORD)
        self.drop_label(names.RECORD_DIGEST)

    @property
    def has_taint_changes(self) -> bool:
        return self.taints is not self.node.spec.taints and self.taints != self.node.spec.taints

    @property
    def has_cordon_change(self) -> bool:
        return self.unschedulable != self.node.spec.unschedulable

    @property
    def is_empty(self) -> bool:
        return not (self.labels or self.annotations or self.has_cordon_change or self.has_taint_changes)

    def to_patch(self) -> NodePatch:
        metadata: Object = {}
        if self.labels:
            metadata["labels"] = self.labels
        if self.annotations:
            metadata["annotations"] = self.annotations
        spec: Object = {}
        if self.has_taint_changes:
            spec["taints"] = [_taint_to_wire(taint) for taint in self.taints]
        if self.has_cordon_change:
            spec["unschedulable"] = self.unschedulable or None
        body: Object = {"metadata": metadata} if metadata else {}
        if spec:
            body["spec"] = spec
        is_conditional = names.TEMPLATE_LABEL in self.labels or bool(spec)
        has_eviction = self.has_taint_changes and evicts(self.node.spec.taints, self.taints)
        return NodePatch(body, self._diff(), is_conditional, has_eviction)

    def _diff(self) -> tuple[FieldChange, ...]:
        metadata = self.node.metadata
        changes = [*_map_diff("metadata.labels", metadata.labels, self.labels)]
        if self.annotations:
            changes += _map_diff("metadata.annotations", metadata.annotations, self.annotations)
        if self.has_taint_changes:
            changes += _taint_diff(self.node.spec.taints, self.taints)
        if self.has_cordon_change:
            before: Json = self.node.spec.unschedulable or None
            changes.append(FieldChange(path="spec.unschedulable", from_=before, to=self.unschedulable or None))
        return tuple(changes)


def _map_diff(path: str, before: Mapping[str, str], changes: Mapping[str, str | None]) -> Iterator[FieldChange]:
    for key, value in changes.items():
        yield FieldChange(path=f"{path}[{key}]", from_=before.get(key), to=value)


def _taint_diff(before: Taints, after: Taints) -> Iterator[FieldChange]:
    old, new = {taint_id(taint): taint for taint in before}, {taint_id(taint): taint for taint in after}
    for each, taint in old.items():
        left = new.get(each)
        if left is None or left.value != taint.value:
            yield FieldChange(path=_taint_path(taint), from_=taint.value, to=None if left is None else left.value)
    for each, taint in new.items():
        if each not in old:
            yield FieldChange(path=_taint_path(taint), to=taint.value)


def _taint_path(taint: Taint) -> str:
    return f"spec.taints[{taint.key}:{taint.effect}]"


def node_ref(node: Node) -> ObjectRef:
    return ObjectRef(api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid)


# cache

_CACHED_LABELS = (names.SPARE_LABEL, names.OUT_LABEL, names.OUT_ROLE_LABEL, names.RECORD_DIGEST)
_CACHED_ANNOTATIONS = (names.RECORD, names.LABELLED)


class PatchCache:
    """Memoizes the patches of one step for one template.

    A patch depends only on the taints and on the keys that the template touches. Spares come in batches that agree in
    these, so most nodes share one body and one diff. This keeps a plan with 100,000 claims cheap in time and memory.
    """

    def __init__(self, wanted: Wanted, make: Callable[[Edit], None]) -> None:
        self._labels = (*wanted.labels, *_CACHED_LABELS)
        self._annotations = (*wanted.annotations, *_CACHED_ANNOTATIONS)
        self._make = make
        self._patches: dict[Hashable, NodePatch] = {}

    def patch_for(self, node: Node) -> NodePatch:
        label, annotation = node.metadata.labels.get, node.metadata.annotations.get
        key = (
            tuple([label(key) for key in self._labels]),
            tuple([annotation(key) for key in self._annotations]),
            node.spec.taints,
        )
        patch = self._patches.get(key)
        if patch is None:
            edit = Edit(node)
            self._make(edit)
            patch = self._patches[key] = edit.to_patch()
        return patch
