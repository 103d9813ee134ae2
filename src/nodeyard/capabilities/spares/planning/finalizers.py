"""The finalizer of a template: added before its first node is patched, removed after its last node is done.

This module also handles templates that cannot be decoded. They are reported and left alone. It is unknown whether such
a template would release its nodes, so the nodes keep their settings and the owner's label: a new template of that name
finds them again.
"""

from __future__ import annotations

from collections.abc import Iterable

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import Abandoned, FinalizerAdded, FinalizerRemoved, Invalid
from nodeyard.capabilities.spares.planning.builder import PlanBuilder, template_ref
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.client.decoding import Malformed
from nodeyard.plan.model import FieldChange

_FIELD = "metadata.finalizers"


def add_finalizer(builder: PlanBuilder, template: Resolved) -> tuple[str, ...]:
    """Add the finalizer if it is missing; return the action that the template's node patches must wait for."""
    if template.template.has_finalizer:
        return ()
    metadata = template.template.metadata
    change = FieldChange(
        path=_FIELD, from_=list(metadata.finalizers) or None, to=[*metadata.finalizers, names.FINALIZER]
    )
    return (
        builder.set_finalizers(template.ref, change, metadata.resource_version, FinalizerAdded(template=template.name)),
    )


def remove_finalizer(builder: PlanBuilder, template: Resolved, after: Iterable[str] = ()) -> None:
    if template.template.has_finalizer:
        metadata = template.template.metadata
        change = _removal(metadata.finalizers)
        message = FinalizerRemoved(template=template.name)
        builder.set_finalizers(template.ref, change, metadata.resource_version, message, tuple(after))


def block_malformed(builder: PlanBuilder, malformed: Malformed) -> None:
    """Report a template that cannot be decoded.

    If it is being deleted, remove the finalizer: nobody can fix it any more, and it would never go.
    """
    ref = template_ref(malformed.name, malformed.uid)
    builder.block(ref, Invalid(template=malformed.name, error=malformed.error))
    if malformed.is_deleting and names.FINALIZER in malformed.finalizers:
        change = _removal(malformed.finalizers)
        builder.set_finalizers(ref, change, malformed.resource_version, Abandoned(template=malformed.name))


def _removal(finalizers: Iterable[str]) -> FieldChange:
    before = list(finalizers)
    return FieldChange(path=_FIELD, from_=before, to=[each for each in before if each != names.FINALIZER] or None)
