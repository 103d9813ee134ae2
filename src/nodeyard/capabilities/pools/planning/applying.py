"""Objects that are ours are applied, and only when that would change something: also what we no longer say goes.

After `clusterctl move` it would not: on the new server everything is owned by who copied it. So what we say of such an
object is taken over while it is there as we say it; nothing in the object changes by that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.plan.diff import diff
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import Disruption, FieldChange, ObjectRef, Verb, Write
from nodeyard.plan.owned import handed_over, outcome


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
        return "" if live is None else _take_over(draft, live, body, facts)
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


def _take_over(draft: Draft, live: Object, body: Object, facts: Object) -> str:
    """The id of the action; empty where all is ours, or where another action of this plan changes the object first."""
    fields = handed_over(live, body, names.MANAGER, names.MOVER)
    ref = ref_to(live)
    if fields is None or any(each.object == ref for each in draft.actions):
        return ""
    return draft.act(
        Verb.PATCH,
        ref,
        Reason.FIELDS_TAKEN_OVER,
        {**facts, "object": str(ref)},
        Write(body={"metadata": {"managedFields": fields}}, resource_version=live["metadata"]["resourceVersion"]),
        part="fields",
    )
