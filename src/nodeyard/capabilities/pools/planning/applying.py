"""Objects that are ours are applied, and only when that would change something: also what we no longer say goes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.plan.diff import diff
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import Disruption, FieldChange, ObjectRef, Verb, Write
from nodeyard.plan.owned import outcome


def ref_to(obj: Object, uid: str = "") -> ObjectRef:
    """The reference to an object, or to one that is yet to be made."""
    metadata = obj["metadata"]
    return ObjectRef(
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        uid=uid or metadata.get("uid", ""),
    )


def changes(
    live: Object | None, body: Object, manager: str = names.MANAGER, keeping: Collection[tuple[str, ...]] = ()
) -> tuple[FieldChange, ...]:
    """What an apply of the body would change; nothing where it need not be sent."""
    if live is None:
        return diff(None, body)
    after = outcome(live, body, manager, keeping)
    return () if after is live else diff(live, after)


def apply(
    draft: Draft,
    live: Object | None,
    body: Object,
    reason: Reason,
    facts: Object,
    *,
    disruption: Disruption = Disruption.NONE,
    disrupts: tuple[str, ...] = (),
    after: Sequence[str] = (),
    changed: tuple[FieldChange, ...] | None = None,
    force: bool = True,
) -> str:
    """The id of the action; empty where the object is as it should be. `changed` is for who has compared them."""
    if changed is None:
        changed = changes(live, body)
    if not changed:
        return ""
    return draft.act(
        Verb.APPLY,
        ref_to(body, "" if live is None else live["metadata"].get("uid", "")),
        reason,
        facts,
        Write(body=body, force=force),
        diff=changed,
        disruption=disruption,
        disrupts=disrupts,
        after=tuple(each for each in after if each),
    )
