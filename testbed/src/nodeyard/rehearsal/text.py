"""A timeline as text for a terminal: the outcome first, then what happened in order, then what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from nodeyard.plan.layout import counted
from nodeyard.rehearsal.timeline import Capacity, Change, Move, Timeline

NAMED: Final = 5
SHOWN: Final = 40


def render_text(timeline: Timeline) -> str:
    sections = (
        _outcome(timeline),
        _section("Timeline", _story(timeline)),
        _section("Pods", _pods(timeline.moves)),
        _section("Held for approval", _held(timeline)),
        _section("Blocked", _refusals(timeline)),
        _section("Lowest free capacity", _capacity(timeline.capacity)),
        _section("Assertions", (f"{'ok    ' if each.holds else 'FAILED'}  {each.text}" for each in timeline.checks)),
        _section("Notes", timeline.notes),
    )
    return "\n".join(section for section in sections if section)


def headline(timeline: Timeline) -> str:
    if timeline.converged:
        return f"Converges in {duration(timeline.seconds)}."
    return f"Does not converge in {duration(timeline.seconds)}."


def summary(timeline: Timeline) -> str:
    """Return the numbers that a person asks for first."""
    facts = timeline.facts
    parts = (
        counted(int(facts["actions"]), "action"),
        f"{counted(int(facts['nodes_deleted']), 'node')} deleted and {int(facts['nodes_created'])} created",
        f"{counted(int(facts['evicted']), 'pod')} evicted of {int(facts['moved'])} that moved",
        f"{int(facts['unplaced'])} that fit nowhere",
    )
    return f"{', '.join(parts)}."


def conditions(timeline: Timeline) -> str:
    return f"Delays: profile {timeline.profile}; seed {timeline.seed}; {timeline.source}."


def duration(value: float) -> str:
    """Return seconds as `2h05m00s`, `3m20s` or `4.2s`."""
    if value < 60:
        return f"{value:.1f}s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m{rest:02d}s" if hours else f"{minutes}m{rest:02d}s"


def _outcome(timeline: Timeline) -> str:
    lines = [headline(timeline), *(f"  because {reason}" for reason in timeline.reasons[:SHOWN])]
    if len(timeline.reasons) > SHOWN:
        lines.append(f"  and {len(timeline.reasons) - SHOWN} more reasons")
    return "\n".join([*lines, summary(timeline), conditions(timeline), ""])


def _section(title: str, lines: Iterable[str]) -> str:
    shown = list(lines)
    return "\n".join([title, *(f"  {line}" for line in shown), ""]) if shown else ""


def story(timeline: Timeline) -> list[tuple[float, float, str]]:
    """Return what happened, with begin and end, in order: steps of the operator, and changes of nodes at one time."""
    found = [(step.begin, step.end, f"{step.capability}/{step.key}: {step.reason} x{step.count}: {step.text}"
              f" ({', '.join(step.objects)}{', …' if step.count > len(step.objects) else ''})")
             for step in timeline.steps]  # fmt: skip
    for _, same in groupby(sorted(timeline.changes, key=_minute), key=_minute):
        changes = list(same)
        names = [each.object for each in changes]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        text = f"{changes[0].what}: {', '.join(names[:NAMED])}{more}"
        found.append((changes[0].at, changes[-1].at, text))
    return sorted(found, key=lambda each: each[:2])


def _minute(change: Change) -> tuple[int, str]:
    return int(change.at // 60), change.what


def _story(timeline: Timeline) -> Iterator[str]:
    for begin, end, text in story(timeline):
        until = f" - {duration(end)}" if end > begin else ""
        yield f"{duration(begin) + until:<20} {text}"


def _pods(moves: list[Move]) -> Iterator[str]:
    if not moves:
        return
    reasons = Counter(each.reason for each in moves)
    yield ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    waited = sorted(each.ready - each.at for each in moves if each.ready is not None)
    if waited:
        median, longest = waited[len(waited) // 2], waited[-1]
        yield f"{len(waited)} ready elsewhere after {duration(median)} (median), {duration(longest)} (longest)"
    for move in moves[:SHOWN]:
        yield f"{duration(move.at):<20} {move.pod} left {move.node} ({move.reason}){_fate(move)}"
    if len(moves) > SHOWN:
        yield f"and {len(moves) - SHOWN} more; -o json has all"


def _fate(move: Move) -> str:
    if move.to:
        name = f" as {move.replacement}" if move.replacement != move.pod else ""
        after = "" if move.ready is None else f", ready after {duration(move.ready - move.at)}"
        return f" for {move.to}{name}{after}"
    if move.replacement:
        return f"; {move.replacement} fits no node"
    return "; not replaced" if move.has_owner else "; it has no controller and is not replaced"


def _held(timeline: Timeline) -> Iterator[str]:
    for each in timeline.held:
        until = "to the end" if each.until is None else f"until {duration(each.until)}"
        yield f"{each.id} ({each.capability}/{each.key}) from {duration(each.since)} {until}: {each.text}"
    if any(each.until is None for each in timeline.held):
        yield "Rehearse with --approve to see how it goes on once they are approved."


def _refusals(timeline: Timeline) -> Iterator[str]:
    for each in timeline.refusals[:SHOWN]:
        until = "to the end" if each.until is None else f"until {duration(each.until)}"
        yield f"{each.object} from {duration(each.since)} {until}: {each.text} ({each.reason})"
    if len(timeline.refusals) > SHOWN:
        yield f"and {len(timeline.refusals) - SHOWN} more; -o json has all"


def _capacity(series: list[Capacity]) -> Iterator[str]:
    for each in series:
        at, nodes, cpu, memory = each.lowest
        yield (
            f"zone {each.zone}, class {each.node_class}: {cpu:g} CPUs and {memory:.1f} GiB on {counted(nodes, 'node')}"
            f" at {duration(at)} ({each.points[0][2]:g} CPUs before)"
        )
