"""Status of LatticeNodeClasses: a class is Ready if it has an entry for the provider of every pool that uses it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from nodeyard.capabilities.pools.messages.states import Reconciled
from nodeyard.capabilities.pools.planning.classes import class_ref, unfit_use
from nodeyard.capabilities.pools.report.status import READY, condition
from nodeyard.capabilities.pools.snapshot import ClassesSnapshot
from nodeyard.capabilities.pools.types import LatticeNodeClass, LatticeNodeClassStatus
from nodeyard.kube.conditions import to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import StatusWrite

LISTED: Final = 50
"""The maximum number of pools in the status."""


def status_classes(snapshot: ClassesSnapshot, now: datetime) -> list[StatusWrite]:
    writes = []
    for each in snapshot.classes:
        after = _wire(_status(snapshot, each, now))
        if after != _wire(each.status):
            writes.append(StatusWrite(object=class_ref(each.metadata.name, each.metadata.uid), status=after))
    return writes


def _status(snapshot: ClassesSnapshot, each: LatticeNodeClass, now: datetime) -> LatticeNodeClassStatus:
    uses, generation = snapshot.uses.get(each.metadata.name, ()), each.metadata.generation
    unfit = next(filter(None, (unfit_use(each, use) for use in uses)), None)
    ready = condition(READY, unfit is None, unfit or Reconciled(), generation)
    return LatticeNodeClassStatus(
        observed_generation=generation,
        pools=tuple(str(use) for use in uses[:LISTED]),
        conditions=with_condition(each.status.conditions, ready, now),
    )


def _wire(status: LatticeNodeClassStatus) -> Object:
    found: Object = {"observedGeneration": status.observed_generation, "conditions": to_wire(status.conditions)}
    return {**found, "pools": list(status.pools)} if status.pools else found
