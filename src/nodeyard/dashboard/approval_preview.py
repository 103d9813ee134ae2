"""Consequences of approving a held plan: the pods on its nodes with their budgets, and the steps that follow.

Pods and budgets are read with the viewer's own credentials.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from nodeyard.client.api import Client
from nodeyard.client.errors import ClientError
from nodeyard.client.resources import PODS, untyped
from nodeyard.dashboard.wire import ApprovalPreview, Budget, PodWithBudget
from nodeyard.kube.drain import is_workload
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Pod
from nodeyard.kube.selectors.labels import LabelSelector, SelectorError
from nodeyard.kube.selectors.objects import from_object
from nodeyard.plan.brake import disrupted_nodes
from nodeyard.plan.layout import counted
from nodeyard.plan.model import Action, Disruption, Plan

BUDGETS: Final = untyped("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
NODES: Final = 50
"""Nodes whose pods are read."""
LISTED: Final = 200
"""Pods that are listed."""
_STEPS: Final[Mapping[Disruption, str]] = {
    Disruption.EVICTS: "Pods are evicted from {nodes}; a PodDisruptionBudget can delay each of them.",
    Disruption.REPLACES: "The workload leaves {nodes}, which are deleted and replaced by new ones.",
    Disruption.RELEASES: "After a cordon the pods leave {nodes}, and the nodes are given back.",
    Disruption.DELETES: "The deletion of {nodes} cannot be undone.",
}


async def preview(client: Client | None, held: Plan) -> ApprovalPreview:
    """Return what approving the held plan means; without a client, without pods and budgets."""
    nodes = disrupted_nodes(held.actions)
    local = sorted({node for action in held.actions if not action.object.cluster for node in _nodes_of(action)})
    pods: list[Pod] = []
    budgets: list[Object] = []
    is_complete = client is not None and len(local) <= NODES
    if client is not None:
        try:
            pods, budgets = await asyncio.gather(_pods(client, local[:NODES]), _budgets(client))
        except ClientError:
            is_complete = False
    selectors = [(each, _selector(each)) for each in budgets]
    shown = [PodWithBudget(namespace=p.metadata.namespace, name=p.metadata.name, budget=_budget_of(p, selectors))
             for p in pods[:LISTED]]  # fmt: skip
    met = {(pod.namespace, pod.budget) for pod in shown if pod.budget}
    return ApprovalPreview(
        id=held.id,
        nodes=max(len(nodes), max((action.group_nodes for action in held.actions), default=0)),
        actions=len(held.actions),
        later_steps=tuple(_steps(held)),
        pods=tuple(shown),
        budgets=tuple(
            Budget(
                namespace=each["metadata"]["namespace"],
                name=each["metadata"]["name"],
                allowed=int((each.get("status") or {}).get("disruptionsAllowed") or 0),
            )
            for each in budgets
            if (each["metadata"]["namespace"], each["metadata"]["name"]) in met
        ),
        truncated=not is_complete or len(pods) > LISTED,
    )


def _nodes_of(action: Action) -> Iterable[str]:
    if action.disruption is Disruption.NONE:
        return ()
    is_node = action.object.kind == "Node" and action.object.api_version == "v1"
    return action.disrupts or ((action.object.name,) if is_node else ())


async def _pods(client: Client, nodes: Sequence[str]) -> list[Pod]:
    """Return the workload pods of these nodes."""
    resource = PODS.decoded_as(Pod)
    pages = await asyncio.gather(*(client.list(resource, fields=f"spec.nodeName={node}") for node in nodes))
    return [pod for page in pages for pod in page.items if is_workload(pod)]


async def _budgets(client: Client) -> list[Object]:
    return (await client.list(BUDGETS)).items


def _selector(budget: Object) -> LabelSelector | None:
    selector: Any = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return None
    try:
        return from_object(selector)
    except SelectorError:
        return None


def _budget_of(pod: Pod, budgets: Iterable[tuple[Object, LabelSelector | None]]) -> str:
    for budget, selector in budgets:
        metadata = budget["metadata"]
        if (
            selector is not None
            and metadata["namespace"] == pod.metadata.namespace
            and selector.matches(pod.metadata.labels)
        ):
            return str(metadata["name"])
    return ""


def _steps(held: Plan) -> Iterable[str]:
    by_disruption: dict[Disruption, list[Action]] = {}
    for action in held.actions:
        by_disruption.setdefault(action.disruption, []).append(action)
    for disruption, sentence in _STEPS.items():
        if actions := by_disruption.get(disruption):
            nodes = {node for action in actions for node in _nodes_of(action)}
            kinds: dict[str, int] = {}
            for action in actions:
                kinds[action.object.kind] = kinds.get(action.object.kind, 0) + 1
            objects = " and ".join(counted(number, kind) for kind, number in sorted(kinds.items()))
            yield sentence.format(nodes=counted(len(nodes), "node") if nodes else objects, objects=objects)
    if waiting := sum(bool(action.after) for action in held.actions):
        yield f"{counted(waiting, 'action')} of the plan {'waits' if waiting == 1 else 'wait'} for others to succeed."
    if group := max((action.group_nodes for action in held.actions), default=0):
        yield f"The approval covers all {counted(group, 'node')} of this change, also in the plans of other keys."
    if any(action.approval_group for action in held.actions):
        yield "It also covers later steps of the same change, and ends with the next edit of its object."
