"""What stands on a node about us: which settings are ours, what they displaced, and how far a release has come.

A record is written in the same patch as the settings it speaks of, so there is no moment at which one is true and the
other not. It is what makes a setting ours: what a node had before, or got from others, is in no record and stays.
Taints stand in it as kubectl writes them, `key=value:Effect`.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.kube.objects import Node

OURS = "ours"
FOREIGN = "foreign"


class _Note(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Short on the node: what is empty is left out."""


class Displaced(_Note, frozen=True):
    """What stood where we put something of ours."""

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
    """As the node had them when it was claimed, to be put back when it is released."""
    spare_label: str = ""
    """Whose the spare label was at the claim: ours, foreign, or empty where there was none."""


class ReleaseNote(_Note, frozen=True):
    template: str
    since: datetime
    cordoned: bool = False
    """Whether the cordon is ours, and thus ours to undo."""
    evicts: bool = False
    """Whether the release evicts. That is decided with the note, which the brake lets pass or holds; each single
    eviction is then part of it."""


_RECORD = msgspec.json.Decoder(Record)
_RELEASE = msgspec.json.Decoder(ReleaseNote)
_ENCODER = msgspec.json.Encoder(order="deterministic")


def encode(note: Record | ReleaseNote) -> str:
    return _ENCODER.encode(note).decode()


def record_of(node: Node) -> Record | None:
    """None where there is no record, or one that somebody has spoilt."""
    text = node.metadata.annotations.get(names.RECORD)
    if text is None:
        return None
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
