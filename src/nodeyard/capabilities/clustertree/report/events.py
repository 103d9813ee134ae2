"""Events of one reconcile: nodes created or removed, contact lost or restored, pods that nothing acknowledges.

Nodes created or removed together make one event, whatever their number. Updates of a node make none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.report.status import FAILURES, REFUSALS, reachable
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.capabilities.clustertree.types import ConditionType
from nodeyard.kube.conditions import FALSE, TRUE, find
from nodeyard.plan.layout import counted
from nodeyard.plan.model import Blocked, ObjectRef, Plan
from nodeyard.runtime.capability import Event

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
FAILED: Final = "Failed"
"""Suffix of the reason of an event about a failed write."""

_NODE_REASONS: Final = (Reason.NODE_CREATED, Reason.NODE_ADOPTED, Reason.NODE_REMOVED)
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
    for reason in _NODE_REASONS:
        done = [each.action for each in results if each.result is Result.DONE and each.action.reason == reason]
        if len(done) == 1:
            yield Event(ref, NORMAL, reason, done[0].facts.past_text())
        elif done:
            first = done[0].facts.past_text()
            yield Event(ref, NORMAL, reason, f"{first} (and {counted(len(done) - 1, 'other node')})")
    for each in results:
        if each.result in FAILURES:
            yield Event(ref, WARNING, f"{each.action.reason}{FAILED}", f"{each.action.object}: {each.message}")


def _of_refusals(ref: ObjectRef, blocked: Iterable[Blocked]) -> Iterator[Event]:
    """Attach the event to the Cluster, or to the pod that it is about, where its owner looks."""
    for each in blocked:
        if each.reason in _STANDING:
            about = each.object if each.reason == Reason.POD_UNACKNOWLEDGED else ref
            yield Event(about, WARNING, each.reason, each.facts.text(), is_standing=True)


def _of_contact(ref: ObjectRef, snapshot: TreeSnapshot) -> Iterator[Event]:
    result = reachable(snapshot)
    if result.status == FALSE and result.reason in _LOST:
        yield Event(ref, WARNING, result.reason, result.message.text(), is_standing=True)
    before = find(snapshot.cluster.status.conditions, ConditionType.REACHABLE)
    if result.status == TRUE and before is not None and before.reason in _LOST:
        yield Event(ref, NORMAL, result.reason, result.message.text())
