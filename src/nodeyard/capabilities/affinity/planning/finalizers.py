"""A finalizer stands before what it guards is made, and goes when that is gone."""

from __future__ import annotations

from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import FieldChange, ObjectRef, Verb, Write


def add(draft: Draft, ref: ObjectRef, metadata: ObjectMeta, finalizer: str, facts: Object) -> str:
    """The id of the action that others come after; empty where it stands already."""
    if finalizer in metadata.finalizers:
        return ""
    change = FieldChange(path=f"metadata.finalizers[{finalizer}]", to=finalizer)
    return _write(draft, ref, metadata, [*metadata.finalizers, finalizer], Reason.FINALIZER_ADDED, facts, change)


def remove(draft: Draft, ref: ObjectRef, metadata: ObjectMeta, finalizer: str, facts: Object) -> None:
    if finalizer not in metadata.finalizers:
        return
    change = FieldChange(path=f"metadata.finalizers[{finalizer}]", from_=finalizer)
    left = [each for each in metadata.finalizers if each != finalizer]
    _write(draft, ref, metadata, left, Reason.FINALIZER_REMOVED, facts, change)


def _write(
    draft: Draft,
    ref: ObjectRef,
    metadata: ObjectMeta,
    finalizers: list[str],
    reason: Reason,
    facts: Object,
    change: FieldChange,
) -> str:
    """The list is written as a whole, so only over the one that was read."""
    return draft.act(
        Verb.PATCH,
        ref,
        reason,
        facts,
        Write(body={"metadata": {"finalizers": finalizers}}, resource_version=metadata.resource_version),
        diff=(change,),
        part="finalizer",
    )
