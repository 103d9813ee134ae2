"""Events about denied pods and pods with warnings, on their application: its user does not see the pod.

If the application is unknown or there is none, the Event is on the controller that creates the pods. A user who creates
a pod directly gets the response.

Controllers retry with a new name each time. The Event names the generateName instead, so that all retries are one Event
with a count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from nodeyard.capabilities.affinity.collect.owners import ReviewedMeta
from nodeyard.capabilities.affinity.messages.pods import PodMessage
from nodeyard.capabilities.affinity.planning.lineage import Lineage, Owned
from nodeyard.capabilities.affinity.planning.placement import Decision, Placement
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Event

WARNING: Final = "Warning"


def placement_events(placement: Placement, lineage: Lineage, pod: ReviewedMeta, namespace: str) -> Iterator[Event]:
    ref = application_ref(lineage) if isinstance(lineage, Owned) else _controller_ref(pod, namespace)
    if placement.decision is Decision.AUDITED or ref is None:
        return
    message = placement.message
    if pod.generate_name and isinstance(message, PodMessage):
        message = msgspec.structs.replace(message, subject=f"pod {namespace}/{pod.generate_name}*")
    yield Event(ref, WARNING, message.reason, message.text())


def _controller_ref(pod: ReviewedMeta, namespace: str) -> ObjectRef | None:
    for owner in pod.owner_references:
        if owner.controller:
            api_version, kind, name, uid = owner.api_version, owner.kind, owner.name, owner.uid
            return ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace, uid=uid)
    return None


def application_ref(lineage: Owned) -> ObjectRef:
    """Return the Application that owns the release; the release if none does."""
    application = lineage.application
    for owner in lineage.release.metadata.owner_references:
        if (owner.kind, owner.name) == (application.kind, application.name):
            namespace = lineage.release.ref.namespace
            return ObjectRef(
                api_version=owner.api_version, kind=owner.kind, name=owner.name, namespace=namespace, uid=owner.uid
            )
    return lineage.release.ref
