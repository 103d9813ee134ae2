"""Events about pods that are refused or warned about, on the application they are of: its user sees the pod nowhere.

Where that is not known, or there is none, on the controller that makes them. Who makes a pod himself has the answer.

Controllers try again and again, each time with another name. An Event says instead what the names begin with, so that
all tries are one Event that is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nodeyard.capabilities.affinity.owners import ReviewedMeta
from nodeyard.capabilities.affinity.planning.lineage import Lineage, Owned
from nodeyard.capabilities.affinity.planning.placement import Decision, Placement
from nodeyard.capabilities.affinity.sentences.placement import sentence
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Event

WARNING: Final = "Warning"


def happening(placement: Placement, lineage: Lineage, pod: ReviewedMeta, namespace: str) -> Iterator[Event]:
    ref = application_ref(lineage) if isinstance(lineage, Owned) else _controller_ref(pod, namespace)
    if placement.decision is Decision.AUDITED or ref is None:
        return
    facts = placement.facts
    if pod.generate_name:
        facts = {**facts, "subject": f"pod {namespace}/{pod.generate_name}*"}
    yield Event(ref, WARNING, placement.reason.value, sentence(placement.reason, facts))


def _controller_ref(pod: ReviewedMeta, namespace: str) -> ObjectRef | None:
    for owner in pod.owner_references:
        if owner.controller:
            api_version, kind, name, uid = owner.api_version, owner.kind, owner.name, owner.uid
            return ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace, uid=uid)
    return None


def application_ref(lineage: Owned) -> ObjectRef:
    """The application where its release tells which one it is, or else the release."""
    application = lineage.application
    for owner in lineage.release.metadata.owner_references:
        if (owner.kind, owner.name) == (application.kind, application.name):
            namespace = lineage.release.ref.namespace
            return ObjectRef(
                api_version=owner.api_version, kind=owner.kind, name=owner.name, namespace=namespace, uid=owner.uid
            )
    return lineage.release.ref
