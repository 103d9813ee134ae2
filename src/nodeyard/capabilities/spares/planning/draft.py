"""A plan in the making: the steps add to it, and at the end it is handed over as it is.

The steps do not know whether what they draft will run. A dry run gets a draft of its own, which is summed up and thrown
away: what is shown is what would have run, because it is the same code.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from nodeyard.capabilities.spares.planning.edits import Change, Edit, node_ref
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Node
from nodeyard.plan import draft
from nodeyard.plan.draft import NAMED
from nodeyard.plan.model import Action, Disruption, ObjectRef, Verb, Write


def listing(nodes: Iterable[str]) -> Object:
    """Several nodes in short: their number, and the first by name."""
    names = list(nodes)
    return {"count": len(names), "nodes": heapq.nsmallest(NAMED, names)}


class Disturbance(NamedTuple):
    """What an action does to what runs on its node, and the undertaking that it is a step of."""

    kind: Disruption = Disruption.NONE
    part_of: str = ""


HARMLESS = Disturbance()


class Draft(draft.Draft):
    def __init__(self, now: datetime) -> None:
        super().__init__(now)
        self.after: tuple[str, ...] = ()
        """What has to succeed before the actions that are added now."""
        self.waits: dict[str, Reason] = {}
        """What each node that is on its way back waits for."""

    def edit(self, edit: Edit, reason: Reason, facts: Object, disturbance: Disturbance = HARMLESS) -> str:
        return self.change(edit.node, edit.change(), reason, facts, disturbance)

    def change(
        self, node: Node, change: Change, reason: Reason, facts: Object, disturbance: Disturbance = HARMLESS
    ) -> str:
        """Change a node, in the one patch that it gets."""
        ref = node_ref(node)
        action = Action(
            id=f"node/{ref.name}",
            verb=Verb.PATCH,
            object=ref,
            reason=reason.value,
            facts=facts,
            diff=change.diff,
            disruption=disturbance.kind,
            part_of=disturbance.part_of,
            after=self.after,
        )
        version = node.metadata.resource_version if change.is_guarded else ""
        return self.add(action, Write(body=change.body, resource_version=version))

    def add(self, action: Action, write: Write) -> str:
        self.actions.append(action)
        self.writes[action.id] = write
        return action.id

    def block_nodes(self, ref: ObjectRef, reason: Reason, nodes: Iterable[str], **facts: object) -> None:
        """Refuse several nodes for one reason."""
        listed = listing(nodes)
        if listed["count"]:
            self.block(ref, reason, {**listed, **facts})

    def counts(self) -> Counter[str]:
        return Counter(action.reason for action in self.actions)
