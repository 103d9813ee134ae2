"""What each key is planned by: the table of contents. Each step is a module of `planning`.

tenants        the tree: namespaces, values, what each tenant has in effect
application    one HelmRelease, with the class in its labels and its placement in its values
definition     the CRD that serves a kind of application
class          who uses it: while somebody does, it stays
pod            nothing; asked for its decision alone
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.collecting import Snapshot
from nodeyard.capabilities.affinity.planning.classes import plan_class
from nodeyard.capabilities.affinity.planning.decisions import decide
from nodeyard.capabilities.affinity.planning.definitions import plan_definition
from nodeyard.capabilities.affinity.planning.releases import plan_application
from nodeyard.capabilities.affinity.planning.tenants import plan_tenants
from nodeyard.capabilities.affinity.pods import PodSnapshot, pod_key
from nodeyard.capabilities.affinity.snapshot import (
    ApplicationSnapshot,
    ClassSnapshot,
    DefinitionSnapshot,
    TenantsSnapshot,
)
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import ObjectRef, Planned
from nodeyard.runtime.capability import Key


def plan(snapshot: Snapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    draft = Draft(now)
    match snapshot:
        case TenantsSnapshot():
            plan_tenants(draft, snapshot)
        case ApplicationSnapshot():
            plan_application(draft, snapshot)
        case DefinitionSnapshot():
            plan_definition(draft, snapshot)
        case ClassSnapshot():
            plan_class(draft, snapshot)
    decisions = [decide(ref, snapshot, draft) for ref in explain]
    return draft.planned(names.CAPABILITY, key_of(snapshot), [each for each in decisions if each is not None])


def key_of(snapshot: Snapshot) -> Key:
    match snapshot:
        case ApplicationSnapshot():
            metadata = snapshot.application["metadata"]
            return names.application_key(snapshot.application["kind"], metadata["namespace"], metadata["name"])
        case DefinitionSnapshot():
            return names.definition_key(snapshot.definition.name)
        case ClassSnapshot():
            return names.class_key(snapshot.affinity_class.name)
        case PodSnapshot():
            return pod_key(snapshot.ref.namespace, snapshot.ref.name)
        case _:
            return names.TENANTS_KEY
