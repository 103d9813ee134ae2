"""The plan builder of spares: planning steps add actions and refusals to it.

A dry run uses a builder of its own. Its content is summarised in `status.dryRun` and then discarded, so a dry run shows
exactly what the same code would have done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import NodesMessage
from nodeyard.capabilities.spares.planning.node_patch import Edit, NodePatch, node_ref
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.kube.objects import Node
from nodeyard.plan import builder
from nodeyard.plan.model import Action, Disruption, FieldChange, ObjectRef, Verb, Write


class Impact(NamedTuple):
    """Disruption of an action for the pods on its node, and the approval group that it belongs to."""

    disruption: Disruption = Disruption.NONE
    approval_group: str = ""


HARMLESS = Impact()


class Wait(NamedTuple):
    """Reason why the release of one node waits."""

    reason: Reason
    pods: tuple[str, ...] = ()
    """The pods that must leave first, as `namespace/name`."""


class PlanBuilder(builder.PlanBuilder):
    def __init__(self, now: datetime) -> None:
        super().__init__(now)
        self.after: tuple[str, ...] = ()
        """Actions that must succeed before the actions added from now on."""
        self.waits: dict[str, Wait] = {}
        """By the name of the node that is being released."""

    def edit(
        self,
        edit: Edit,
        message: NodesMessage,
        impact: Impact = HARMLESS,
        after: tuple[str, ...] = (),
    ) -> str:
        return self.patch(edit.node, edit.to_patch(), message, impact, after)

    def patch(
        self,
        node: Node,
        patch: NodePatch,
        message: NodesMessage,
        impact: Impact = HARMLESS,
        after: tuple[str, ...] = (),
    ) -> str:
        """Add the patch of a node; a plan has at most one per node."""
        ref = node_ref(node)
        action = Action(
            id=f"node/{ref.name}",
            verb=Verb.PATCH,
            object=ref,
            reason=message.reason,
            facts=message,
            diff=patch.diff,
            disruption=impact.disruption,
            approval_group=impact.approval_group,
            after=(*self.after, *after) if after else self.after,
        )
        version = node.metadata.resource_version if patch.is_conditional else ""
        return self.add(action, Write(body=patch.body, resource_version=version))

    def set_finalizers(
        self,
        template: ObjectRef,
        finalizers: FieldChange,
        resource_version: str,
        message: NodesMessage,
        after: tuple[str, ...] = (),
    ) -> str:
        """Replace the finalizers of a template; the patch carries its resourceVersion."""
        action = Action(
            id=f"template/{template.name}",
            verb=Verb.PATCH,
            object=template,
            reason=message.reason,
            facts=message,
            diff=(finalizers,),
            after=after,
        )
        body = {"metadata": {"finalizers": finalizers.to or []}}
        return self.add(action, Write(body=body, resource_version=resource_version))

    def add(self, action: Action, write: Write) -> str:
        self.actions.append(action)
        self.writes[action.id] = write
        return action.id

    def block_nodes(self, ref: ObjectRef, message: NodesMessage, nodes: Iterable[str]) -> None:
        """Add one refusal for several nodes; none without nodes."""
        every = list(nodes)
        if every:
            self.block(ref, message.with_nodes(every))

    def counts(self) -> Counter[str]:
        """Count the actions by reason."""
        return Counter(action.reason for action in self.actions)


def template_ref(name: str, uid: str) -> ObjectRef:
    return ObjectRef(api_version=names.API_VERSION, kind=names.KIND, name=name, uid=uid)
