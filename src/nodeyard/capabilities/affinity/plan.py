"""Plan each kind of key. Each step is a module of `planning`.

tenants        the tree: namespaces, values and effective policies
application    one HelmRelease, with the class in its labels and the placement in its values
definition     the CRD that serves a kind of application
class          the finalizer that keeps a class in use
pod            no actions; only the decision for `why`
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.application_plan import plan_application
from nodeyard.capabilities.affinity.planning.classes import plan_class
from nodeyard.capabilities.affinity.planning.decisions import decide
from nodeyard.capabilities.affinity.planning.definitions import plan_definition
from nodeyard.capabilities.affinity.planning.tenants import plan_tenants
from nodeyard.capabilities.affinity.snapshot import (
    ApplicationSnapshot,
    ClassSnapshot,
    DefinitionSnapshot,
    PodSnapshot,
    Snapshot,
    TenantsSnapshot,
)
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import ObjectRef, Planned
from nodeyard.runtime.capability import Key


def plan(snapshot: Snapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    builder = PlanBuilder(now)
    match snapshot:
        case TenantsSnapshot():
            plan_tenants(builder, snapshot)
        case ApplicationSnapshot():
            plan_application(builder, snapshot)
        case DefinitionSnapshot():
            plan_definition(builder, snapshot)
        case ClassSnapshot():
            plan_class(builder, snapshot)
    decisions = [decide(ref, snapshot, builder) for ref in explain]
    return builder.planned(names.CAPABILITY, key_of(snapshot), [each for each in decisions if each is not None])


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
            return names.pod_key(snapshot.ref.namespace, snapshot.ref.name)
        case _:
            return names.TENANTS_KEY
