"""Why a node or a template is as it is."""

from __future__ import annotations

import pytest

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import text
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.names import MIRRORED_NODE
from nodeyard.kube.objects import Node
from nodeyard.plan.model import Decision, ObjectRef

from ....builders.spares import NOW, apply, node, owned, snapshot, spare, template, unread

COMPUTE = {"matchLabels": {"role": "compute"}}


def why(seen: SparesSnapshot, kind: str, name: str) -> Decision:
    version = "v1" if kind == "Node" else names.API_VERSION
    [decision] = plan(seen, NOW, [ObjectRef(api_version=version, kind=kind, name=name)]).plan.decisions
    return decision


def candidates(decision: Decision) -> dict[str, str]:
    return {each.name: each.reason for each in decision.candidates}


def test_a_claimed_node_names_its_template_and_why_the_others_left_it() -> None:
    templates = [
        template("high", priority=3),
        template("broken", priority=2, nodes=-1),
        template("low", selector=COMPUTE),
        template("later"),
    ]
    decision = why(snapshot([spare("a")], templates), "Node", "a")
    assert (decision.rule, decision.facts["template"]) == ("Claimed", "high")
    assert candidates(decision) == {
        "high": "Claimed",
        "broken": "InvalidTemplate",
        "later": "TakenByOther",
        "low": "SelectorMismatch",
    }
    assert [each.name for each in decision.candidates if each.is_taken] == ["high"]


def test_a_node_at_rest_is_explained_too() -> None:
    seen = snapshot([owned("a", "web")], [template("web")])
    decision = why(seen, "Node", "a")
    assert (decision.rule, decision.facts) == ("Kept", {"node": "a", "template": "web"})
    assert candidates(decision) == {"web": "Kept"}
    assert decision.would_change


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        pytest.param(node("a"), "NotSpare", id="not-spare"),
        pytest.param(spare("a"), "Spare", id="not-needed"),
        pytest.param(owned("a", "gone"), "TemplateMissing", id="owner-unknown"),
        pytest.param(node("a", labels={names.OUT_LABEL: "old"}), "OutOfManagement", id="fell-out"),
        pytest.param(spare("a", labels={MIRRORED_NODE: "true"}), "OwnedElsewhere", id="mirrored"),
        pytest.param(spare("a", is_deleting=True), "NodeDeleting", id="deleting"),
    ],
)
def test_every_other_standing_has_its_rule(given: Node, rule: str) -> None:
    assert why(snapshot([given], [template("web", 0)]), "Node", "a").rule == rule


def test_a_template_lists_every_candidate_with_its_reason() -> None:
    nodes = [
        spare("a", labels={"role": "compute"}),
        spare("b", labels={"role": "compute"}, is_ready=False),
        spare("c"),
        owned("d", "web", labels={"role": "compute"}),
    ]
    web = template("web", 3, selector=COMPUTE, eligibility={"requireReady": True})
    decision = why(snapshot(nodes, [web]), "NodeTemplate", "web")
    assert decision.rule == "NoSpareNodesFound"
    assert decision.facts == {"template": "web", "desired": 3, "kept": 1, "missing": 1}
    assert candidates(decision) == {"a": "Claimed", "b": "NotReady", "c": "SelectorMismatch", "d": "Kept"}


def test_a_template_that_waits_for_a_higher_one_names_it() -> None:
    decision = why(snapshot([], [template("low"), template("high", priority=2)]), "NodeTemplate", "low")
    assert (decision.rule, decision.facts["higher"]) == ("HighPriorityNodeTemplateExists", "high")


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"dryRun": True}, "DryRun"),
        ({"paused": True}, "Paused"),
        ({"priority": 1}, "SufficientNodes"),
        ({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}, "TemplateDeleting"),
    ],
)
def test_a_template_that_stands_still_says_why(given: dict[str, object], rule: str) -> None:
    assert why(snapshot([], [template("web", 0, **given)]), "NodeTemplate", "web").rule == rule


def test_a_template_that_cannot_be_read_is_explained() -> None:
    decision = why(snapshot(malformed={"web": unread("web", "no number")}), "NodeTemplate", "web")
    assert (decision.rule, decision.facts["error"]) == ("InvalidTemplate", "no number")


def test_what_is_not_there_is_not_explained() -> None:
    refs = [ObjectRef(api_version="v1", kind=kind, name="x") for kind in ("Node", "NodeTemplate", "Pod")]
    assert not plan(snapshot(), NOW, refs).plan.decisions


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_words(reason: Reason) -> None:
    for facts in ({"node": "a", "template": "web"}, {"count": 2, "nodes": ["a", "b"], "template": "web"}, {}):
        assert text(reason.value, facts) not in ("", reason.value)


def test_a_reason_of_others_is_its_own_text() -> None:
    assert text("SomethingElse", {}) == "SomethingElse"


def test_every_candidate_reads_as_a_sentence_that_names_whom_it_is_about() -> None:
    fleet = [owned("a", "web"), spare("b"), spare("c", labels={MIRRORED_NODE: "true"}), spare("d", is_ready=False)]
    templates = [
        template("web", 1),
        template("picky", 3, priority=2, eligibility={"requireReady": True}),
        template("broken", nodes=-1),
        template("other", 1),
    ]
    seen = snapshot(fleet, templates)
    said = {
        (decision.object.name, each.name): text(each.reason, each.facts)
        for decision in plan(seen, NOW, refs(seen)).plan.decisions
        for each in decision.candidates
    }
    assert said["a", "web"] == said["web", "a"] == "Kept as web describes it"
    assert said["a", "other"] == "Taken by web"
    assert said["b", "web"] == said["web", "b"] == "Taken by picky"
    assert said["b", "picky"] == "Takes the node for picky"
    assert said["picky", "c"] == "Another capability (clustertree) has the node"
    assert said["b", "broken"].startswith("spec.nodes: Invalid value: -1")
    assert not [sentence for sentence in said.values() if "  " in sentence or sentence.endswith((" ", ":"))]


def refs(seen: SparesSnapshot) -> list[ObjectRef]:
    nodes = [ObjectRef(api_version="v1", kind="Node", name=each.metadata.name) for each in seen.nodes]
    kinds = [ObjectRef(api_version=names.API_VERSION, kind=names.KIND, name=each.name) for each in seen.templates]
    return nodes + kinds


def test_of_many_nodes_on_their_way_back_each_says_what_it_waits_for() -> None:
    fleet = [owned(f"n{number:02}", "web") for number in range(12)]
    seen = snapshot(fleet, [template("web", 0, releasePolicy="Release")])
    leaving = apply(seen, plan(seen, NOW))
    assert {why(leaving, "Node", each.metadata.name).rule for each in fleet} == {Reason.SETTLING.value}
