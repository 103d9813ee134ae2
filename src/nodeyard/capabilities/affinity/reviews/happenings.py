"""Events about pods that are refused or warned about, on the application they are of: its user sees the pod nowhere.

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


def happening(placement: Placement, lineage: Lineage, pod: ReviewedMeta) -> Iterator[Event]:
    if placement.decision is Decision.AUDITED or not isinstance(lineage, Owned):
        return
    facts = placement.facts
    if pod.generate_name:
        facts = {**facts, "subject": f"pod {lineage.release.ref.namespace}/{pod.generate_name}*"}
    said = sentence(placement.reason, facts)
    yield Event(application_ref(lineage), WARNING, placement.reason.value, said)


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
