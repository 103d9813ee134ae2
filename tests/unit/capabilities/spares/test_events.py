"""One event per template, reason and reconcile."""

from __future__ import annotations

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.report.events import events
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.plan.brake import Limit, brake
from nodeyard.runtime.capability import Event

from ....builders.spares import NOW, node, outcome, owned, snapshot, spare, template


def told(seen: SparesSnapshot, **results: Result) -> list[Event]:
    planned = plan(seen, NOW)
    return list(events(seen, planned.plan, outcome(planned, **results)))


def test_many_claims_make_one_event_with_the_first_ten_names() -> None:
    nodes = [spare(f"n{number:02}") for number in range(12)]
    [event] = told(snapshot(nodes, [template("web", 12)]))
    listed = ", ".join(f"n{number:02}" for number in range(10))
    assert (event.type, event.reason) == ("Normal", "Claimed")
    assert event.message == f"Claimed 12 nodes ({listed} and 2 more) for web"
    assert (event.object.kind, event.object.name, event.object.uid) == ("NodeTemplate", "web", "uid-web")


def test_failures_are_a_warning_with_the_message_of_the_server() -> None:
    [event] = told(snapshot([spare("a")], [template("web")]), a=Result.DENIED)
    assert (event.type, event.reason) == ("Warning", "ClaimedFailed")
    assert event.message == "1 node (a): the server said no"
    assert event.is_standing


def test_a_conflict_is_no_event() -> None:
    assert told(snapshot([spare("a")], [template("web")]), a=Result.CONFLICT) == []


def test_refusals_are_events_by_reason() -> None:
    seen = snapshot([spare("a", is_ready=False)], [template("web", eligibility={"requireReady": True})])
    assert [(event.type, event.reason, event.message) for event in told(seen)] == [
        ("Warning", "NoSpareNodesFound", "No spare nodes found"),
        ("Warning", "NotReady", "Not Ready, required by spec.eligibility.requireReady of web: 1 node (a)"),
    ]


def test_a_dry_run_is_an_event() -> None:
    [event] = told(snapshot([spare("a")], [template("web", dryRun=True)]))
    assert (event.type, event.reason, event.message) == ("Normal", "DryRun", "Dry run: would claim 1 node: a")


def test_held_actions_are_one_event_on_each_affected_template() -> None:
    fleet = [owned("a", "web"), owned("b", "web"), owned("c", "db"), owned("d", "still")]
    giving = [template(name, 0, releasePolicy="Release") for name in ("web", "db")]
    seen = snapshot(fleet, [*giving, template("still", 1)])
    braked = brake(plan(seen, NOW).plan, Limit(nodes=0, percent=0), managed=4)
    assert braked.held is not None
    said = [event for event in events(seen, braked.now, Outcome()) if event.reason == "NeedsApproval"]
    assert [(event.object.name, event.type, event.is_standing) for event in said] == [
        ("web", "Warning", True),
        ("db", "Warning", True),
    ]
    assert f"`nodeyard approve {braked.held.id}` to proceed" in said[0].message


def test_labelling_spares_is_no_event() -> None:
    assert told(snapshot([node("a", taints=["node.cybozu.io/spare=true:NoSchedule"])])) == []


def test_adding_a_finalizer_is_no_event() -> None:
    assert told(snapshot([], [template("web", 0, metadata={"finalizers": []})])) == []
