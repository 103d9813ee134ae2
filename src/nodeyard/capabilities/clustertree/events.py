"""What is said about a pass: of nodes that come and go, of a leaf that is lost and found, of pods that nobody takes up.

Nodes that come or go together are one event, whatever their number; that a node follows its leaf is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.clustertree.messages import text
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.capabilities.clustertree.status import BAD, REFUSALS, reachable
from nodeyard.capabilities.clustertree.types import ConditionType
from nodeyard.kube.conditions import FALSE, TRUE, find
from nodeyard.plan.layout import counted
from nodeyard.plan.model import Blocked, ObjectRef, Plan
from nodeyard.runtime.capability import Event

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
FAILED: Final = "Failed"
"""Ends the reason of an event about writes that did not succeed."""

_TOLD: Final = (Reason.NODE_CREATED, Reason.NODE_ADOPTED, Reason.NODE_REMOVED)
_LOST: Final = (Reason.UNREACHABLE, Reason.CREDENTIALS_REJECTED)
_STANDING: Final[frozenset[str]] = REFUSALS | {Reason.MODELS_OVERLAP, Reason.POD_UNACKNOWLEDGED}


def events(snapshot: TreeSnapshot, plan: Plan, outcome: Outcome) -> Sequence[Event]:
    ref = cluster_ref(snapshot.cluster)
    return [
        *_of_results(ref, outcome.results),
        *_of_refusals(ref, plan.blocked),
        *_of_contact(ref, snapshot),
    ]


def _of_results(ref: ObjectRef, results: Sequence[ActionResult]) -> Iterator[Event]:
    for reason in _TOLD:
        done = [each.action for each in results if each.result is Result.DONE and each.action.reason == reason]
        if len(done) == 1:
            yield Event(ref, NORMAL, reason, text(reason, done[0].facts))
        elif done:
            first = text(reason, done[0].facts)
            yield Event(ref, NORMAL, reason, f"{first}; {counted(len(done) - 1, 'other node')} likewise")
    for each in results:
        if each.result in BAD:
            yield Event(ref, WARNING, f"{each.action.reason}{FAILED}", f"{each.action.object}: {each.message}")


def _of_refusals(ref: ObjectRef, blocked: Iterable[Blocked]) -> Iterator[Event]:
    """On the Cluster; of a pod on the pod itself, where its owner looks."""
    for each in blocked:
        if each.reason in _STANDING:
            about = each.object if each.reason == Reason.POD_UNACKNOWLEDGED else ref
            yield Event(about, WARNING, each.reason, text(each.reason, each.facts), is_standing=True)


def _of_contact(ref: ObjectRef, snapshot: TreeSnapshot) -> Iterator[Event]:
    verdict = reachable(snapshot)
    if verdict.status == FALSE and verdict.reason in _LOST:
        yield Event(ref, WARNING, verdict.reason, text(verdict.reason, verdict.facts), is_standing=True)
    before = find(snapshot.cluster.status.conditions, ConditionType.REACHABLE)
    if verdict.status == TRUE and before is not None and before.reason in _LOST:
        yield Event(ref, NORMAL, verdict.reason, text(verdict.reason, verdict.facts))
