"""The class of an application, as stored on its Application and shown on its HelmRelease.

The record is an annotation of the Application that only the operator writes:

    {"uid":"9d…","release":"postgres-main","class":"dc2","source":"explicit","previous":["dc1"]}

Admission and the planner decide by the record. The labels of the HelmRelease show the same and decide nothing: anybody
who may write HelmReleases in a tenant could change them. The uid is the Application's own, set by the API server. A
record that was copied from another object, or set on creation, therefore does not count. A webhook and an admission
policy keep others from changing it later.

During a change of class, pods may still have a previous class. A label of the HelmRelease lists these, latest first,
joined by `_`, which no class name contains:

    dc2_dc1    changed from dc1 to dc2, and on from there before the release was ready
    (empty)    had no class: pods may be anywhere

If the label has no room for all of them, the oldest are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from nodeyard.capabilities.affinity import names
from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX

NO_CLASS: Final = ""
_SEPARATOR: Final = "_"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The class in effect and its source."""

    uid: str
    release: str
    """The HelmRelease, in the Application's namespace."""
    affinity_class: str = msgspec.field(name="class")
    """Empty: the application has no class."""
    source: str
    previous: tuple[str, ...] = ()
    """Earlier classes, which pods may have until the release is ready; `NO_CLASS` for none."""

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(each for each in (self.affinity_class, *self.previous) if each)


def read_record(annotations: Mapping[str, str], uid: str) -> Record | None:
    """Return the record of the Application with this uid; None if there is none, or it belongs to another object."""
    text = annotations.get(names.CLASS_RECORD)
    if text is None or not uid:
        return None
    try:
        record = msgspec.json.decode(text, type=Record)
    except msgspec.DecodeError:
        return None
    return record if record.uid == uid else None


def stored_record(application: Object) -> Record | None:
    """Return the record of an Application; None if it has no valid one."""
    metadata = application.get("metadata") or {}
    return read_record(metadata.get("annotations") or {}, metadata.get("uid", ""))


def encode(record: Record) -> str:
    return msgspec.json.encode(record).decode()


# previous classes


def previous_classes(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Read the previous classes from the labels of a HelmRelease; empty if its class is not changing."""
    value = labels.get(names.PREVIOUS_CLASS)
    return () if value is None else tuple(value.split(_SEPARATOR))


def previous_label(previous: Sequence[str]) -> str:
    """Return the label value for at least one previous class."""
    if NO_CLASS in previous:
        return NO_CLASS
    kept = list(previous)
    while len(_SEPARATOR.join(kept)) > LABEL_VALUE_MAX:
        kept.pop()
    return _SEPARATOR.join(kept)


def format_previous(previous: Sequence[str]) -> str:
    """Format previous classes for status and messages."""
    return ", ".join(previous)
