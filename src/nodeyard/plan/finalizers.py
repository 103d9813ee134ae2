"""Finalizers: added before the objects that they guard are created, removed once these are gone."""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.message import Message
from nodeyard.plan.model import FieldChange, ObjectRef, Verb, Write

_PART = "finalizer"


def add(builder: PlanBuilder, ref: ObjectRef, metadata: ObjectMeta, finalizer: str, message: Message) -> str:
    """Add the finalizer; return the id of the action to wait for, empty if the finalizer is there already."""
    if finalizer in metadata.finalizers:
        return ""
    change = FieldChange(path=f"metadata.finalizers[{finalizer}]", to=finalizer)
    return _write(builder, ref, metadata, [*metadata.finalizers, finalizer], message, change)


def remove(builder: PlanBuilder, ref: ObjectRef, metadata: ObjectMeta, finalizer: str, message: Message) -> None:
    if finalizer not in metadata.finalizers:
        return
    change = FieldChange(path=f"metadata.finalizers[{finalizer}]", from_=finalizer)
    left = [each for each in metadata.finalizers if each != finalizer]
    _write(builder, ref, metadata, left, message, change)


def _write(
    builder: PlanBuilder,
    ref: ObjectRef,
    metadata: ObjectMeta,
    finalizers: Sequence[str],
    message: Message,
    change: FieldChange,
) -> str:
    """Write the whole list, with optimistic locking."""
    body = {"metadata": {"finalizers": list(finalizers)}}
    write = Write(body=body, resource_version=metadata.resource_version)
    return builder.act(Verb.PATCH, ref, message, write, diff=(change,), part=_PART)
