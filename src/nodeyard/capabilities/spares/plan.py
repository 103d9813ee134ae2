"""All templates are planned together over one stock: the table of contents. Each step is a module of `planning`.

1. The fleet is surveyed: templates in the order of priority, their nodes, the spares.
2. Level by level, each template takes its turn: moves, releases, repairs, claims.
3. A template that stays short says why: a higher one competes, or there are no spares; and which were refused.
4. What a level still waits for is held from the levels below.
5. The spares that are left get their label.
6. What somebody asks about is explained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.contention import Waiting
from nodeyard.capabilities.spares.planning.decisions import decide
from nodeyard.capabilities.spares.planning.draft import Draft
from nodeyard.capabilities.spares.planning.fleet import Fleet, survey
from nodeyard.capabilities.spares.planning.labels import label_spares
from nodeyard.capabilities.spares.planning.refusals import Refusals
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.planning.turns import Turn, take_turn
from nodeyard.capabilities.spares.planning.unread import set_aside
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.capabilities.spares.types import Reason
from nodeyard.plan.model import ObjectRef, Plan, Planned

_LAST_STEPS = frozenset({Reason.CLAIMED.value, Reason.FINALIZER_ADDED.value})
_LASTING = frozenset({Reason.NO_SPARE.value, Reason.HIGH_PRIORITY.value, Reason.PAUSED.value, Reason.INVALID.value})


def plan(snapshot: SparesSnapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    draft = Draft(now)
    fleet = survey(snapshot)
    for _name, unread in sorted(snapshot.malformed.items()):
        set_aside(draft, unread)
    turns = take_turns(draft, fleet)
    label_spares(draft, fleet)
    decisions = tuple(decide(ref, fleet, turns, draft) for ref in explain) if explain else ()
    return Planned(
        plan=Plan(
            capability=names.CAPABILITY,
            key=names.KEY,
            actions=tuple(draft.actions),
            blocked=tuple(draft.blocked),
            decisions=tuple(decision for decision in decisions if decision is not None),
            wake_at=draft.wake_at,
        ),
        writes=draft.writes,
        is_final=_is_final(draft),
    )


def _is_final(draft: Draft) -> bool:
    """A claimed node is as described and stays. Everything else may be the first of several steps.

    Refusals that are about nodes, and dry runs, may read otherwise once the stock is what the claims have left.
    """
    steps = {action.reason for action in draft.actions}
    return steps <= _LAST_STEPS and {blocked.reason for blocked in draft.blocked} <= _LASTING


def take_turns(draft: Draft, fleet: Fleet) -> dict[str, Turn]:
    """Every template once, the highest priority first; those of one priority do not stand in each other's way."""
    waiting = Waiting(fleet.templates)
    refusals = Refusals(fleet.stock)
    turns: dict[str, Turn] = {}
    for level in _levels(fleet.templates):
        short: list[Resolved] = []
        for template in level:
            turn = turns[template.name] = take_turn(draft, fleet, template)
            if turn.short:
                _explain_shortage(draft, turn, waiting, refusals)
                short.append(template)
        for template in short:
            if template.can_claim:
                waiting.add(template)
                if any(template.eligibility):
                    fleet.stock.hold(template)
    return turns


def _levels(templates: list[Resolved]) -> Iterator[list[Resolved]]:
    for _priority, level in groupby(templates, key=lambda each: each.priority):
        yield list(level)


def _explain_shortage(draft: Draft, turn: Turn, waiting: Waiting, refusals: Refusals) -> None:
    template = turn.template
    competitor = waiting.competitor(template)
    facts = {"template": template.name, "missing": turn.short}
    if competitor is None:
        draft.block(template.ref, Reason.NO_SPARE, facts)
    else:
        turn.competitor = competitor.name
        draft.block(template.ref, Reason.HIGH_PRIORITY, {**facts, "higher": competitor.name})
    for reason, nodes in refusals.of(template).items():
        draft.block(template.ref, reason, {**nodes, "template": template.name})
