"""The finalizer comes before the first node is touched and goes after the last one: no template vanishes unseen."""

from __future__ import annotations

from collections.abc import Iterable

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.draft import Draft
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.types import Reason
from nodeyard.plan.model import Action, FieldChange, Verb, Write


def add(draft: Draft, template: Resolved) -> tuple[str, ...]:
    """What the template's other actions have to come after."""
    if template.template.has_finalizer:
        return ()
    before = template.template.metadata.finalizers
    return (_write(draft, template, (*before, names.FINALIZER), Reason.FINALIZER_ADDED),)


def remove(draft: Draft, template: Resolved, after: Iterable[str] = ()) -> None:
    if template.template.has_finalizer:
        left = tuple(each for each in template.template.metadata.finalizers if each != names.FINALIZER)
        _write(draft, template, left, Reason.FINALIZER_REMOVED, tuple(after))


def _write(
    draft: Draft, template: Resolved, finalizers: tuple[str, ...], reason: Reason, after: tuple[str, ...] = ()
) -> str:
    metadata = template.template.metadata
    change = FieldChange(
        path="metadata.finalizers", from_=list(metadata.finalizers) or None, to=list(finalizers) or None
    )
    action = Action(
        id=f"template/{template.name}",
        verb=Verb.PATCH,
        object=template.ref,
        reason=reason.value,
        facts={"template": template.name},
        diff=(change,),
        after=after,
    )
    body = {"metadata": {"finalizers": list(finalizers)}}
    return draft.add(action, Write(body=body, resource_version=metadata.resource_version))
