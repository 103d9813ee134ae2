"""One template's turn: strangers leave, surplus goes back, its own nodes are put right, missing ones are claimed."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodeyard.capabilities.spares.planning import finalizers
from nodeyard.capabilities.spares.planning.claims import claim
from nodeyard.capabilities.spares.planning.draft import Draft
from nodeyard.capabilities.spares.planning.drift import repair
from nodeyard.capabilities.spares.planning.fleet import Fleet
from nodeyard.capabilities.spares.planning.moves import let_go, move_out
from nodeyard.capabilities.spares.planning.releases import release
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.planning.victims import choose
from nodeyard.capabilities.spares.snapshot import owner_elsewhere
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.objects import Node

LISTED = 50
"""How many nodes a dry run lists."""


@dataclass
class Turn:
    """What came of it: how many nodes are still missing, and the template that has to be served first, if any."""

    template: Resolved
    short: int = 0
    competitor: str = ""
    kept: list[Node] = field(default_factory=list)


def take_turn(draft: Draft, fleet: Fleet, template: Resolved) -> Turn:
    """Plan one template. The stock is what those before it have left."""
    turn = Turn(template)
    if template.idle is Reason.INVALID:
        draft.block(template.ref, Reason.INVALID, {"template": template.name, "error": template.error})
        if template.template.is_deleting and not (template.template.is_paused or template.template.is_dry_run):
            # Nobody can mend it any more, and its finalizer would keep it for ever.
            _dissolve(draft, fleet, template, _within_reach(draft, fleet, template))
    elif template.idle is Reason.PAUSED:
        draft.block(template.ref, Reason.PAUSED, {"template": template.name})
    elif template.idle is Reason.DRY_RUN:
        rehearsed = Draft(draft.now)
        _serve(rehearsed, fleet, turn)
        _sum_up(draft, template, rehearsed)
    else:
        _serve(draft, fleet, turn)
    return turn


def _serve(draft: Draft, fleet: Fleet, turn: Turn) -> None:
    template = turn.template
    nodes = _within_reach(draft, fleet, template)
    if template.template.is_deleting:
        _dissolve(draft, fleet, template, nodes)
        return
    draft.after = finalizers.add(draft, template)
    turn.kept = [node for node in fleet.nodes_of(template) if template.matches(node)]
    move_out(draft, template, (node for node in nodes if not template.matches(node)))
    ours = [node for node in nodes if template.matches(node)]
    victims: list[Node] = []
    if template.template.releases:
        staying = sum(not (_is_going(node) or owner_elsewhere(node)) for node in turn.kept)
        victims = choose(ours, template, fleet.snapshot, staying - template.desired)
        release(draft, fleet.snapshot, template, victims)
    leaving = {node.metadata.name for node in victims}
    repair(draft, template, (node for node in ours if node.metadata.name not in leaving) if leaving else ours)
    missing = template.desired - len(turn.kept)
    turn.short = max(0, missing - claim(draft, fleet.stock, template, turn.kept, missing))
    draft.after = ()


def _within_reach(draft: Draft, fleet: Fleet, template: Resolved) -> list[Node]:
    """The template's nodes, but for those that go anyway and those that another capability has."""
    reachable: list[Node] = []
    refused: list[str] = []
    for node in fleet.nodes_of(template):
        if owner_elsewhere(node):
            refused.append(node.metadata.name)
        elif not _is_going(node):
            reachable.append(node)
    draft.block_nodes(template.ref, Reason.OWNED_ELSEWHERE, refused, template=template.name)
    return reachable


def _is_going(node: Node) -> bool:
    return node.metadata.deletion_timestamp is not None


def _dissolve(draft: Draft, fleet: Fleet, template: Resolved, nodes: list[Node]) -> None:
    """A deleted template's nodes are let go or given back; it is gone when the last of them is done.

    Those that another capability has are let go in any case: the owner's label is ours, and nobody else would drop it.
    """
    elsewhere = [node for node in fleet.nodes_of(template) if owner_elsewhere(node) and not _is_going(node)]
    if not template.template.releases:
        finalizers.remove(draft, template, after=let_go(draft, template, [*nodes, *elsewhere]))
        return
    release(draft, fleet.snapshot, template, nodes)
    gone = let_go(draft, template, elsewhere)
    if not nodes:
        finalizers.remove(draft, template, after=gone)


def _sum_up(draft: Draft, template: Resolved, rehearsed: Draft) -> None:
    """A dry run in numbers. One that is being deleted and has no nodes may go, for that changes nothing else."""
    counts = rehearsed.counts()
    touched = [action.object.name for action in rehearsed.actions if action.object.kind == "Node"]
    if template.template.is_deleting and not touched:
        finalizers.remove(draft, template)
        return
    draft.blocked += rehearsed.blocked
    draft.waits |= rehearsed.waits
    draft.block(
        template.ref,
        Reason.DRY_RUN,
        {
            "template": template.name,
            "claims": counts[Reason.CLAIMED],
            "updates": counts[Reason.UPDATED] + counts[Reason.RELEASE_CANCELLED],
            "moves": counts[Reason.MOVED_OUT] + counts[Reason.LET_GO],
            "releases": counts[Reason.RELEASING] + counts[Reason.RELEASED],
            "nodes": sorted(touched)[:LISTED],
        },
    )
