"""Status of templates after a reconcile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.report import report
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.capabilities.spares.types import NodeTemplateStatus
from nodeyard.kube.json import Object

from ....builders.spares import NOW, all_done, apply, described, outcome, owned, pod, snapshot, spare, template

DELETING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}


def said(seen: SparesSnapshot, now: Any = NOW, **results: Result) -> dict[str, Object]:
    """Return the statuses to write, by template."""
    planned = plan(seen, now)
    return {
        each.object.name: each.status for each in report(seen, planned.plan, outcome(planned, **results), now).statuses
    }


def condition(wire: Object, kind: str) -> tuple[str, str, str]:
    found = next(each for each in wire["conditions"] if each["type"] == kind)
    return found["status"], found["reason"], found["message"]


def test_it_is_final_in_the_pass_that_claimed() -> None:
    nodes = [spare("a", zone="z1"), spare("b", zone="z2"), owned("c", "web", zone="z1")]
    wire = said(snapshot(nodes, [template("web", 3, metadata={"generation": 7})]))["web"]
    assert wire["currentNodes"] == 3
    assert wire["reconcileInfo"] == {"observedGeneration": 7}
    assert wire["nodes"] == ["a", "b", "c"]
    assert wire["zones"] == {"z1": 2, "z2": 1}
    assert condition(wire, "Sufficient") == ("True", "SufficientNodes", "Current nodes are sufficient")
    assert condition(wire, "ReconcileSuccess") == ("True", "ReconcileSuccess", "Reconcile succeeded")
    assert {each["observedGeneration"] for each in wire["conditions"]} == {7}


def test_a_shortage_says_no_spare_nodes_found() -> None:
    wire = said(snapshot([], [template("web")]))["web"]
    assert wire["currentNodes"] == 0
    assert condition(wire, "Sufficient") == ("False", "NoSpareNodesFound", "No spare nodes found")


def test_a_shortage_behind_a_higher_template_names_it() -> None:
    wire = said(snapshot([], [template("low"), template("high", priority=2)]))["low"]
    assert condition(wire, "Sufficient") == (
        "False",
        "HighPriorityNodeTemplateExists",
        "There is a NodeTemplate with higher priority that is not sufficient",
    )


def test_a_failed_claim_is_a_reconcile_error_with_the_message_of_the_server() -> None:
    wire = said(snapshot([spare("a")], [template("web")]), a=Result.FAILED)["web"]
    assert condition(wire, "Sufficient") == (
        "False",
        "ReconcileError",
        "Current nodes are insufficient because of reconcile error",
    )
    assert condition(wire, "ReconcileSuccess") == ("False", "ReconcileError", "the server said no")


@pytest.mark.parametrize("result", [Result.CONFLICT, Result.SKIPPED, Result.HELD])
def test_an_incomplete_pass_reports_no_status(result: Result) -> None:
    assert said(snapshot([spare("a")], [template("web")]), a=result) == {}


def test_a_pass_that_sent_nothing_reports_no_status() -> None:
    seen = snapshot([spare("a")], [template("web")])
    assert not report(seen, plan(seen, NOW).plan, Outcome(), NOW).statuses


def test_a_release_that_the_brake_holds_does_not_silence_the_status() -> None:
    seen = snapshot([owned("a", "web")], [template("web", 0, releasePolicy="Release")])
    assert said(seen, a=Result.HELD)["web"]["currentNodes"] == 1


def test_an_invalid_template_reports_its_faults() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "Foo"}]}
    wire = said(snapshot([owned("a", "web")], [template("web", 2, selector=selector)]))["web"]
    value, reason, message = condition(wire, "ReconcileSuccess")
    assert (value, reason) == ("False", "ReconcileError")
    assert 'Invalid value: "Foo"' in message
    assert wire["currentNodes"] == 1


def test_a_dry_run_reports_its_plan_as_success() -> None:
    wire = said(snapshot([spare("a")], [template("web", dryRun=True)]))["web"]
    assert wire["dryRun"] == {"claims": 1, "updates": 0, "moves": 0, "releases": 0, "nodes": ["a"]}
    assert condition(wire, "Sufficient") == ("False", "DryRun", "Dry run: would claim 1 node: a")
    assert condition(wire, "ReconcileSuccess")[0] == "True"


def test_refusals_are_counted_by_reason() -> None:
    nodes = [spare("a", is_ready=False), spare("b")]
    eligibility = {"requireReady": True, "requireEmpty": True}
    wire = said(snapshot(nodes, [template("web", eligibility=eligibility)], [pod("p", "b")]))["web"]
    assert wire["refusals"] == {"NotReady": 1, "NotEmpty": 1}


def test_nodes_that_do_not_match_any_more_are_not_counted() -> None:
    seen = snapshot([owned("a", "web")], [template("web", selector={"matchLabels": {"x": "y"}}, paused=True)])
    assert said(seen)["web"]["currentNodes"] == 0


def test_the_list_of_nodes_is_bounded() -> None:
    nodes = [owned(f"n{number:03}", "web") for number in range(120)]
    wire = said(snapshot(nodes, [template("web", 120)]))["web"]
    assert wire["currentNodes"] == 120
    assert wire["nodes"] == [f"n{number:03}" for number in range(50)]


def test_it_is_not_written_again_when_nothing_changed() -> None:
    seen = snapshot([spare("a")], [template("web")])
    planned = plan(seen, NOW)
    [write] = report(seen, planned.plan, all_done(planned), NOW).statuses
    written = msgspec.structs.replace(template("web"), status=msgspec.convert(write.status, NodeTemplateStatus))
    settled = SparesSnapshot(apply(seen, planned).nodes, [written])
    assert said(settled, NOW + timedelta(hours=1)) == {}


def test_a_condition_keeps_the_moment_of_its_last_change() -> None:
    before = {
        "conditions": [
            {
                "type": "Sufficient",
                "status": "False",
                "reason": "ReconcileError",
                "message": "",
                "lastTransitionTime": "2020-01-01T00:00:00Z",
            }
        ]
    }
    wire = said(snapshot([], [template("web", status=before)]))["web"]
    moments = {each["type"]: each["lastTransitionTime"] for each in wire["conditions"]}
    assert moments == {"Sufficient": "2020-01-01T00:00:00Z", "ReconcileSuccess": "2030-01-01T00:00:00Z"}


def test_a_condition_of_others_stays() -> None:
    before = {"conditions": [{"type": "Theirs", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}
    wire = said(snapshot([], [template("web", status=before)]))["web"]
    assert [each["type"] for each in wire["conditions"]] == ["Sufficient", "ReconcileSuccess", "Theirs"]


def test_a_template_that_goes_in_this_pass_gets_no_status() -> None:
    assert said(snapshot([owned("a", "web")], [template("web", metadata=DELETING)])) == {}


def test_a_template_being_deleted_reports_the_remaining_nodes() -> None:
    going = template("web", metadata=DELETING, releasePolicy="Release", template=described())
    assert said(snapshot([owned("a", "web")], [going]))["web"]["currentNodes"] == 1


def test_a_surplus_that_is_retained_is_a_condition() -> None:
    seen = snapshot([owned("a", "web"), owned("b", "web"), owned("c", "web")], [template("web", 1)])
    wire = said(seen)["web"]
    assert condition(wire, "Sufficient")[0] == "True"
    assert condition(wire, "Surplus") == (
        "True",
        "SurplusRetained",
        "web has 2 nodes more than spec.nodes and keeps them: spec.releasePolicy is Retain",
    )
    lowered = msgspec.convert(wire, NodeTemplateStatus)
    now_fits = [msgspec.structs.replace(template("web", 3), status=lowered)]
    assert [each["type"] for each in said(SparesSnapshot(seen.nodes, now_fits))["web"]["conditions"]] == [
        "Sufficient",
        "ReconcileSuccess",
    ]


def test_a_surplus_that_is_released_is_no_condition() -> None:
    seen = snapshot([owned("a", "web"), owned("b", "web")], [template("web", 1, releasePolicy="Release")])
    assert [each["type"] for each in said(seen)["web"]["conditions"]] == ["Sufficient", "ReconcileSuccess"]


def test_a_skipped_action_after_a_failure_does_not_hide_the_status() -> None:
    seen = snapshot([spare("a")], [template("web", 1, metadata={"finalizers": []})])
    wire = said(seen, web=Result.DENIED, a=Result.SKIPPED)["web"]
    assert condition(wire, "ReconcileSuccess") == ("False", "ReconcileError", "the server said no")
