"""Add a finalizer before the objects it guards are created; remove it once they are gone."""

from __future__ import annotations

from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import FieldChange, ObjectRef, Verb, Write


def add(builder: PlanBuilder, ref: ObjectRef, metadata: ObjectMeta, finalizer: str, facts: Object) -> str:
    """Add the finalizer; return the id of the action to wait for, empty if the finalizer is there already."""
    if finalizer in metadata.finalizers:
        return ""
    change = FieldChange(path=f"metadata.finalizers[{finalizer}]", to=finalizer)
    return _write(builder, ref, metadata, [*metadata.finalizers, finalizer], Reason.FINALIZER_ADDED, facts, change)


def remove(builder: PlanBuilder, ref: ObjectRef, metadata: ObjectMeta, finalizer: str, facts: Object) -> None:
    if finalizer not in metadata.finalizers:
        return
    change = FieldChange(path=f"metadata.finalizers[{finalizer}]", from_=finalizer)
    left = [each for each in metadata.finalizers if each != finalizer]
    _write(builder, ref, metadata, left, Reason.FINALIZER_REMOVED, facts, change)


def _write(
    builder: PlanBuilder,
    ref: ObjectRef,
    metadata: ObjectMeta,
    finalizers: list[str],
    reason: Reason,
    facts: Object,
    change: FieldChange,
) -> str:
    """Write the whole list, with optimistic locking."""
    return builder.act_with_facts(
        Verb.PATCH,
        ref,
        reason,
        facts,
        Write(body={"metadata": {"finalizers": finalizers}}, resource_version=metadata.resource_version),
        diff=(change,),
        part="finalizer",
    )
