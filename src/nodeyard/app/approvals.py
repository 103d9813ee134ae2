"""Approves a held plan, or revokes the approval, in annotations of the plan's root object.

The plan's id is a hash of the held actions. It does not depend on the operator's limit, so the plan is found with any
limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nodeyard.app.dry_planner import DryPlanner
from nodeyard.client.api import Client
from nodeyard.client.errors import ClientError
from nodeyard.client.resources import untyped
from nodeyard.kube.json import Json
from nodeyard.kube.names import APPROVALS, APPROVE
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.plan.brake import JOINT, Limit, is_counted
from nodeyard.plan.identity import approvals
from nodeyard.plan.model import Action, ObjectRef, Plan
from nodeyard.process.clock import Clock, SystemClock
from nodeyard.runtime.annotations import annotations_of, approval_ids, root_ref
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.dry_plan import DryPlan

_HOLD_EVERYTHING: Final = Limit(nodes=0, percent=0)
REMEMBERED: Final = 10
"""Approvals kept on one root object."""
REASON_MAX: Final = 500
_REVIEWS: Final = untyped("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview")


class NotHeld(LookupError):
    """No held plan has this id; the text lists the ids there are."""


@dataclass(frozen=True)
class Approved:
    plan: Plan
    root: ObjectRef
    by: str = ""
    """The user who approved; empty if the server did not say."""


class Approval(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record of an approval: who approved the plan, and why."""

    id: str
    by: str = ""
    at: str = ""
    reason: str = ""


async def approve(
    client: Client, planner: DryPlanner, id: str, reason: str = "", clock: Clock | None = None
) -> Approved:
    """Write the approval of a held plan on its root objects. Raises NotHeld if no plan has the id.

    The plans are made with the limit 0, so a plan may hold more groups here than in the operator, and have a longer id.
    """
    disruptive = [(each, each.braked.held) for each in planner.plans(_HOLD_EVERYTHING) if each.braked.held is not None]
    parts = frozenset(id.split(JOINT))
    matching = [(dry_plan, held) for dry_plan, held in disruptive if parts.issubset(held.id.split(JOINT))]
    if not matching:
        known = [f"{held.id} ({each.capability.name})" for each, held in disruptive]
        raise NotHeld(f"no disruptive plan has the id {id}; there are: {', '.join(known) or 'none'}")
    return await approve_plans(client, matching, id, reason, clock)


async def approve_plans(
    client: Client, matching: Sequence[tuple[DryPlan, Plan]], id: str, reason: str = "", clock: Clock | None = None
) -> Approved:
    """Write the approval of an id on the root objects of the plans that hold it: each plan with its held part."""
    parts = frozenset(id.split(JOINT))
    places: dict[ObjectRef, tuple[Capability, Any, list[str]]] = {}
    for dry_plan, held in matching:
        for ref, (root, ids) in _places(dry_plan, held, parts).items():
            places.setdefault(ref, (dry_plan.capability, root, ids))
    plan = matching[0][1]
    if not places:
        raise NotHeld(f"plan {id} of {plan.capability} has no root object that could carry the approval")
    now = format_rfc3339((clock or SystemClock()).now())
    approval = Approval(id, await whoami(client), now, " ".join(reason.split())[:REASON_MAX])
    for ref, (capability, root, ids) in places.items():
        records = [*_records(root, without=id), approval][-REMEMBERED:]
        approved = with_approval(approval_ids(root), JOINT.join(sorted(ids)))
        await _annotate(client, capability, ref, approved, records)
    return Approved(plan, next(iter(places)), approval.by)


async def revoke(client: Client, planner: DryPlanner, id: str) -> list[ObjectRef]:
    """Remove an approval from every root object that carries it. Actions already done are not undone."""
    found: dict[ObjectRef, tuple[Capability, Any]] = {}
    for dry_plan in planner.plans(_HOLD_EVERYTHING):
        capability = dry_plan.capability
        for root in (*dry_plan.roots, *dry_plan.approval_roots):
            ref = root_ref(capability, root) if any(_is_part(each, id) for each in approval_ids(root)) else None
            if ref is not None:
                found[ref] = capability, root
    if not found:
        raise NotHeld(f"no object has an approval of {id} in its annotation {APPROVE}")
    for ref, (capability, root) in found.items():
        left = ",".join(each for each in approval_ids(root) if not _is_part(each, id))
        await _annotate(client, capability, ref, left or None, list(_records(root, without=id)))
    return list(found)


def _is_part(approved: str, id: str) -> bool:
    """Return whether an approval is for this plan, or for a part of it that another object carries."""
    return not set(approved.split(JOINT)).isdisjoint(id.split(JOINT))


async def whoami(client: Client) -> str:
    """Ask the server for our user name; empty if it does not answer."""
    try:
        review = await client.create(
            _REVIEWS, {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind, "metadata": {}}
        )
        return str(review["status"]["userInfo"]["username"])
    except (ClientError, LookupError, TypeError):
        return ""


def _records(root: Any, without: str) -> Iterable[Approval]:
    try:
        known = msgspec.json.decode(annotations_of(root).get(APPROVALS, "[]"), type=list[Approval])
    except msgspec.MsgspecError:
        known = []
    return (each for each in known if each.id != without)


def _places(dry_plan: DryPlan, held: Plan, parts: Collection[str]) -> dict[ObjectRef, tuple[Any, list[str]]]:
    """Return the objects to write the approval on, each with the ids approved there.

    An approval group that spans several keys is approved on a root that all of them read. If that is gone, such as a
    deleted profile, it is approved on the roots of each key.
    """
    found: dict[ObjectRef, tuple[Any, list[str]]] = {}
    for id, actions in approvals(held, filter(is_counted, held.actions)).items():
        if id in parts and (roots := _roots(dry_plan, actions)):
            ref, root = roots[0]
            found.setdefault(ref, (root, []))[1].append(id)
    return found


def _roots(dry_plan: DryPlan, actions: Sequence[Action]) -> list[tuple[ObjectRef, Any]]:
    """Return the roots on which an approval group can be approved, the object that causes it first."""
    is_shared = any(action.group_nodes for action in actions)
    roots = (*dry_plan.approval_roots, *dry_plan.roots) if is_shared else dry_plan.roots
    found = [(ref, root) for root in roots if (ref := root_ref(dry_plan.capability, root)) is not None]
    causes = {action.group_root for action in actions}
    return sorted(found, key=lambda each: each[0] not in causes)


def with_approval(given: Sequence[str], id: str) -> str:
    """Add an id to the approved ones. Recent ids stay: their plans may still be running. The oldest are dropped."""
    return ",".join([*(each for each in given if each != id), id][-REMEMBERED:])


async def _annotate(
    client: Client, capability: Capability, root: ObjectRef, approved: str | None, records: Sequence[Approval]
) -> None:
    resource = next(
        watch.resource
        for watch in capability.watches
        if (watch.resource.api_version, watch.resource.kind) == (root.api_version, root.kind)
    )
    written: Json = msgspec.json.encode(records).decode() if records else None
    patch = {"metadata": {"uid": root.uid, "annotations": {APPROVE: approved, APPROVALS: written}}}
    await client.patch(resource, root.name, patch, root.namespace)
