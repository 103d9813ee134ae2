"""The form of an Event.

`events.k8s.io/v1`, and not the older one of the core group: it has a series (count and last time) made for counting
equal events on one object, names the controller and its instance, and the server checks it. `kubectl describe` and
`kubectl get events` show both alike, for they are two views of one store.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Final, Protocol

from nodeyard.kube.json import Object
from nodeyard.kube.names import GROUP
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import rfc3339_micro

NOTE_MAX: Final = 1024
WORDS_MAX: Final = 128
_NAME_MAX = 220
_CUT = "..."
# The only namespaces in which an event about an object without one may stand.
_CLUSTER_NAMESPACE = "default"


class Occurrence(Protocol):
    """What is recorded; `runtime.capability.Event` is one."""

    @property
    def object(self) -> ObjectRef: ...

    @property
    def type(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def message(self) -> str: ...


def namespace_of(ref: ObjectRef) -> str:
    """An object of a further cluster has no namespace here, whatever it has there."""
    return _CLUSTER_NAMESPACE if ref.cluster else ref.namespace or _CLUSTER_NAMESPACE


def name_of(occurrence: Occurrence, moment: datetime, instance: str) -> str:
    """Unique to this occurrence, and a valid name whatever the object's is."""
    told = (occurrence.object, occurrence.type, occurrence.reason, occurrence.message, instance, moment.isoformat())
    return f"{occurrence.object.name[:_NAME_MAX].rstrip('-.')}.{sha256(repr(told).encode()).hexdigest()[:16]}"


def event_object(occurrence: Occurrence, name: str, moment: datetime, capability: str, instance: str) -> Object:
    ref = occurrence.object
    about = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name}
    note = occurrence.message
    if ref.cluster:
        note = f"{ref}: {note}"
    elif ref.namespace:
        about["namespace"] = ref.namespace
    if ref.uid:
        about["uid"] = ref.uid
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace_of(ref)},
        "eventTime": rfc3339_micro(moment),
        "type": occurrence.type,
        "reason": occurrence.reason[:WORDS_MAX],
        "action": occurrence.reason[:WORDS_MAX],
        "note": _note(note),
        "regarding": about,
        "reportingController": f"{GROUP}/{capability}",
        "reportingInstance": instance[:WORDS_MAX],
    }


def series_object(count: int, last: datetime) -> Object:
    return {"count": count, "lastObservedTime": rfc3339_micro(last)}


def _note(message: str) -> str:
    encoded = message.encode()
    if len(encoded) <= NOTE_MAX:
        return message
    return encoded[: NOTE_MAX - len(_CUT)].decode(errors="ignore") + _CUT
