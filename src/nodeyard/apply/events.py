"""The Event object.

It is `events.k8s.io/v1`, not the core group's Event: that version has a series (count and last time) for repeated
events on one object and names the controller and its instance, and the server validates it. `kubectl describe` and
`kubectl get events` show both alike, since they share one store.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Final, Protocol

from nodeyard.kube.json import Object
from nodeyard.kube.names import GROUP
from nodeyard.kube.timestamps import format_rfc3339_micro
from nodeyard.plan.model import ObjectRef

NOTE_MAX: Final = 1024
WORDS_MAX: Final = 128
_NAME_MAX = 220
_CUT = "..."
# The only namespace for Events about cluster-scoped objects.
_CLUSTER_NAMESPACE = "default"


class Occurrence(Protocol):
    """An Event to record; `runtime.capability.Event` implements it."""

    @property
    def object(self) -> ObjectRef: ...

    @property
    def type(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def message(self) -> str: ...


def namespace_of(ref: ObjectRef) -> str:
    """Return the namespace of the Event. An object of a remote cluster has no namespace on the host cluster."""
    return _CLUSTER_NAMESPACE if ref.cluster else ref.namespace or _CLUSTER_NAMESPACE


def name_of(occurrence: Occurrence, moment: datetime, instance: str) -> str:
    """Return a unique, valid name, whatever the name of the object is."""
    identity = (occurrence.object, occurrence.type, occurrence.reason, occurrence.message, instance, moment.isoformat())
    return f"{occurrence.object.name[:_NAME_MAX].rstrip('-.')}.{sha256(repr(identity).encode()).hexdigest()[:16]}"


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
        "eventTime": format_rfc3339_micro(moment),
        "type": occurrence.type,
        "reason": occurrence.reason[:WORDS_MAX],
        "action": occurrence.reason[:WORDS_MAX],
        "note": _note(note),
        "regarding": about,
        "reportingController": f"{GROUP}/{capability}",
        "reportingInstance": instance[:WORDS_MAX],
    }


def series_object(count: int, last: datetime) -> Object:
    return {"count": count, "lastObservedTime": format_rfc3339_micro(last)}


def _note(message: str) -> str:
    encoded = message.encode()
    if len(encoded) <= NOTE_MAX:
        return message
    return encoded[: NOTE_MAX - len(_CUT)].decode(errors="ignore") + _CUT
