"""Lets a held plan go: finds it by its id and says so on its root object.

The id is a hash of what is held and does not depend on the limit that the operator holds it by, so any limit finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nodeyard.app.inspection import Inspection, Look
from nodeyard.client.api import Client
from nodeyard.kube.names import APPROVE
from nodeyard.plan.brake import Limit
from nodeyard.plan.model import ObjectRef, Plan
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.roots import approved_on, root_ref

_NOTHING_UNASKED: Final = Limit(nodes=0, percent=0)
REMEMBERED: Final = 10
"""Approvals on one root."""


class NotHeld(LookupError):
    """No plan of this id; the text lists those there are."""


@dataclass(frozen=True)
class Approved:
    plan: Plan
    root: ObjectRef


async def approve(client: Client, inspection: Inspection, id: str) -> Approved:
    disruptive = [look for look in inspection.plans(_NOTHING_UNASKED) if look.braked.held is not None]
    for look in disruptive:
        held = look.braked.held
        if held is None or held.id != id:
            continue
        found = next(((each, ref) for each in _places(look, held) if (ref := root_ref(look.capability, each))), None)
        if found is None:
            raise NotHeld(f"plan {id} of {look.capability.name} has no root object to approve it on")
        root, ref = found
        await _annotate(client, look.capability, ref, with_approval(approved_on(root), id))
        return Approved(held, ref)
    known = [f"{look.braked.held.id} ({look.capability.name})" for look in disruptive if look.braked.held]
    raise NotHeld(f"no disruptive plan has the id {id}; there are: {', '.join(known) or 'none'}")


def _places(look: Look, held: Plan) -> Iterable[Any]:
    """Where it can be approved, the best first: what is shared with other keys where all of them see it."""
    is_shared = any(action.shared_by for action in held.actions)
    return (*look.wider, *look.roots) if is_shared else look.roots


def with_approval(given: Sequence[str], id: str) -> str:
    """What is approved already stays approved: it may be on its way. The oldest are over, and go."""
    return ",".join([*(each for each in given if each != id), id][-REMEMBERED:])


async def _annotate(client: Client, capability: Capability, root: ObjectRef, approved: str) -> None:
    resource = next(
        watch.resource
        for watch in capability.watches
        if (watch.resource.api_version, watch.resource.kind) == (root.api_version, root.kind)
    )
    patch = {"metadata": {"uid": root.uid, "annotations": {APPROVE: approved}}}
    await client.patch(resource, root.name, patch, root.namespace)
