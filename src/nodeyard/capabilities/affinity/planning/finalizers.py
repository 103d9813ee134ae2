"""Add a finalizer before the objects it guards are created; remove it once they are gone."""

from __future__ import annotations

from nodeyard.capabilities.affinity.messages.objects import FinalizerAdded, FinalizerRemoved
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import FieldChange, ObjectRef, Verb, Write


def add(builder: PlanBuilder, ref: ObjectRef, metadata: ObjectMeta, finalizer: str) -> str:
    """Add the finalizer; return the id of the action to wait for, empty if the finalizer is there already."""
    if finalizer in metadata.finalizers:
        return ""
    change = FieldChange(path=f"metadata.finalizers[{finalizer}]", to=finalizer)
    message = FinalizerAdded(object=ref, finalizer=finalizer)
    return _write(builder, metadata, [*metadata.finalizers, finalizer], message, change)


def remove(builder: PlanBuilder, ref: ObjectRef, metadata: ObjectMeta, finalizer: str) -> None:
    if finalizer not in metadata.finalizers:
        return
    change = FieldChange(path=f"metadata.finalizers[{finalizer}]", from_=finalizer)
    left = [each for each in metadata.finalizers if each != finalizer]
    _write(builder, metadata, left, FinalizerRemoved(object=ref, finalizer=finalizer), change)


def _write(
    builder: PlanBuilder,
    metadata: ObjectMeta,
    finalizers: list[str],
    message: FinalizerAdded | FinalizerRemoved,
    change: FieldChange,
) -> str:
    """Write the whole list, with optimistic locking."""
    return builder.act(
        Verb.PATCH,
        message.object,
        message,
        Write(body={"metadata": {"finalizers": finalizers}}, resource_version=metadata.resource_version),
        diff=(change,),
        part="finalizer",
    )
