"""Templates that cannot be read: said to be so and left alone, and let go when they are deleted.

Whether such a template would give its nodes back is not to be known, so they stay as they are, the owner's label
included: a template of that name finds them again.
"""

from __future__ import annotations

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.draft import Draft
from nodeyard.capabilities.spares.types import Reason
from nodeyard.client.decoding import Malformed
from nodeyard.plan.model import Action, FieldChange, ObjectRef, Verb, Write


def set_aside(draft: Draft, unread: Malformed) -> None:
    draft.block(ref_of(unread), Reason.INVALID, {"template": unread.name, "error": unread.error})
    if unread.is_deleting and names.FINALIZER in unread.finalizers:
        _abandon(draft, unread)


def ref_of(unread: Malformed) -> ObjectRef:
    return ObjectRef(api_version=names.API_VERSION, kind=names.KIND, name=unread.name, uid=unread.uid)


def _abandon(draft: Draft, unread: Malformed) -> None:
    """Nobody can mend it any more, and our finalizer would keep it for ever."""
    left = [each for each in unread.finalizers if each != names.FINALIZER]
    action = Action(
        id=f"template/{unread.name}",
        verb=Verb.PATCH,
        object=ref_of(unread),
        reason=Reason.ABANDONED.value,
        facts={"template": unread.name},
        diff=(FieldChange(path="metadata.finalizers", from_=list(unread.finalizers), to=left or None),),
    )
    draft.add(action, Write(body={"metadata": {"finalizers": left}}, resource_version=unread.resource_version))
