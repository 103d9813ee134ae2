"""Nodeyard's own annotations on a node: the ownership record and the release note.

The record lists which labels, annotations and taints Nodeyard set and what they displaced. It is written in the same
patch as these settings, so the two never disagree. Settings that are in no record belong to others and stay. Taints
are recorded as kubectl writes them, `key=value:Effect`.

A record is valid only with its digest in the label `RECORD_DIGEST`. The annotation alone proves nothing: a kubelet may
annotate its own node. The admission plugin NodeRestriction denies kubelets every label of that domain. A forged record
could gain only labels of the same domain, so both rely on the same plugin.
https://github.com/kubernetes/kubernetes/blob/v1.36.0/plugin/pkg/admission/noderestriction/admission.go
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from hashlib import sha256

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.kube.objects import Node

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


@lru_cache(maxsize=4096)
def digest_of(text: str) -> str:
    """Return the value of the digest label for a record."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]


@lru_cache(maxsize=4096)
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
