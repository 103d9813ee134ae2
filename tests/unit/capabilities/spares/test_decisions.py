"""Explanations of nodes and templates for `nodeyard why`."""

from __future__ import annotations

import msgspec
import pytest

from nodeyard.capabilities.spares import messages, names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.kube.names import MIRRORED_NODE
from nodeyard.kube.objects import Node
from nodeyard.plan.model import Decision, ObjectRef

from ....builders.messages import message_classes, sample
from ....builders.spares import NOW, apply, node, owned, pod, snapshot, spare, template, unread

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
    assert (decision.rule, decision.facts.template) == ("Claimed", "high")
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
    assert (decision.rule, msgspec.to_builtins(decision.facts)) == ("Kept", {"node": "a", "template": "web"})
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
def test_every_other_node_state_has_its_rule(given: Node, rule: str) -> None:
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
    facts = {"template": "web", "desired": 3, "kept": 1, "missing": 1, "refusals": {"NotReady": 1}}
    assert msgspec.to_builtins(decision.facts) == facts
    assert decision.facts.text() == "No spare nodes found: web lacks 1 of 3 nodes; not claimed: 1 NotReady"
    assert remedies(decision) == ["AddSpares", "ChangeSelector", "MakeReady"]
    assert candidates(decision) == {"a": "Claimed", "b": "NotReady", "c": "SelectorMismatch", "d": "Kept"}


def test_a_template_that_waits_for_a_higher_one_names_it() -> None:
    decision = why(snapshot([], [template("low"), template("high", priority=2)]), "NodeTemplate", "low")
    assert (decision.rule, decision.facts.higher) == ("HighPriorityNodeTemplateExists", "high")


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"dryRun": True}, "DryRun"),
        ({"paused": True}, "Paused"),
        ({"priority": 1}, "SufficientNodes"),
        ({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}, "TemplateDeleting"),
    ],
)
def test_an_idle_template_explains_why(given: dict[str, object], rule: str) -> None:
    assert why(snapshot([], [template("web", 0, **given)]), "NodeTemplate", "web").rule == rule


def test_a_template_that_cannot_be_read_is_explained() -> None:
    decision = why(snapshot(malformed={"web": unread("web", "no number")}), "NodeTemplate", "web")
    assert (decision.rule, decision.facts.error) == ("InvalidTemplate", "no number")


def test_missing_objects_are_not_explained() -> None:
    refs = [ObjectRef(api_version="v1", kind=kind, name="x") for kind in ("Node", "NodeTemplate", "Pod")]
    assert not plan(snapshot(), NOW, refs).plan.decisions


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_one_message_with_words(reason: Reason) -> None:
    kind = message_classes(messages)[reason]
    for facts in ({"node": "a", "template": "web"}, {"count": 2, "nodes": ("a", "b"), "template": "web"}, {}):
        assert sample(kind, **facts).text() not in ("", reason.value)


def test_every_candidate_is_a_sentence_that_names_its_object() -> None:
    fleet = [owned("a", "web"), spare("b"), spare("c", labels={MIRRORED_NODE: "true"}), spare("d", is_ready=False)]
    templates = [
        template("web", 1),
        template("picky", 3, priority=2, eligibility={"requireReady": True}),
        template("broken", nodes=-1),
        template("other", 1),
    ]
    seen = snapshot(fleet, templates)
    said = {
        (decision.object.name, each.name): each.facts.text()
        for decision in plan(seen, NOW, refs(seen)).plan.decisions
        for each in decision.candidates
    }
    assert said["a", "web"] == said["web", "a"] == "Belongs to web"
    assert said["a", "other"] == "Claimed by web"
    assert said["b", "web"] == said["web", "b"] == "Claimed by picky"
    assert said["b", "picky"] == "Claims the node for picky"
    assert said["picky", "c"] == "Managed by capability clustertree: the node"
    assert said["b", "broken"].startswith("spec.nodes: Invalid value: -1")
    assert not [sentence for sentence in said.values() if "  " in sentence or sentence.endswith((" ", ":"))]


def refs(seen: SparesSnapshot) -> list[ObjectRef]:
    nodes = [ObjectRef(api_version="v1", kind="Node", name=each.metadata.name) for each in seen.nodes]
    kinds = [ObjectRef(api_version=names.API_VERSION, kind=names.KIND, name=each.name) for each in seen.templates]
    return nodes + kinds


def test_each_node_being_released_names_what_it_waits_for() -> None:
    fleet = [owned(f"n{number:02}", "web") for number in range(12)]
    seen = snapshot(fleet, [template("web", 0, releasePolicy="Release")])
    leaving = apply(seen, plan(seen, NOW))
    assert {why(leaving, "Node", each.metadata.name).rule for each in fleet} == {Reason.SETTLING.value}


# remedies


def advice(decision: Decision) -> list[str]:
    return [each.text() for each in decision.would_change]


def remedies(decision: Decision) -> list[str]:
    return [each.reason for each in decision.would_change]


def test_surplus_nodes_that_are_retained_are_no_plain_sufficiency() -> None:
    seen = snapshot([owned("a", "web"), owned("b", "web")], [template("web", 1)])
    decision = why(seen, "NodeTemplate", "web")
    assert decision.rule == "SurplusRetained"
    said = decision.facts.text()
    assert said == "web has 1 node more than spec.nodes and keeps it: spec.releasePolicy is Retain"
    assert advice(decision)[0] == "Set spec.releasePolicy to Release to release surplus nodes"


def test_a_spare_that_no_selector_matches_has_no_remedy_to_raise_a_number() -> None:
    decision = why(snapshot([spare("a")], [template("web", 1, selector=COMPUTE)]), "Node", "a")
    assert decision.facts.text() == "Spare: no template selects it"
    assert remedies(decision) == ["ChangeSelector"]
    [candidate] = decision.candidates
    said = candidate.facts.text()
    assert said == "spec.selector requires role=compute; label role is missing"


def test_a_spare_that_is_not_needed_names_the_template_whose_number_to_raise() -> None:
    templates = [template("web", 0, selector=COMPUTE), template("db", 0, selector={"matchLabels": {"role": "db"}})]
    decision = why(snapshot([spare("a", labels={"role": "compute"})], templates), "Node", "a")
    assert decision.facts.text() == "Spare: no template that selects it (web) needs another node"
    assert advice(decision) == ["Raise spec.nodes of web"]
    mismatch = next(each for each in decision.candidates if each.name == "db")
    assert mismatch.facts.text() == "spec.selector requires role=db; the node has role=compute"


def test_a_spare_that_is_not_selected_says_whether_others_ranked_first() -> None:
    for wanted, said in (
        (1, "Not selected: enough other spares ranked first (least-used zone, then name)"),
        (0, "Not selected: web has as many nodes as spec.nodes"),
    ):
        [candidate] = why(snapshot([spare("a"), spare("b")], [template("web", wanted)]), "Node", "b").candidates
        assert candidate.facts.text() == said


def test_a_spare_without_any_template_asks_for_one() -> None:
    assert remedies(why(snapshot([spare("a")]), "Node", "a")) == ["AddTemplate"]


def test_a_spare_that_a_short_template_refuses_says_which_requirement_failed() -> None:
    web = template("web", 1, eligibility={"requireReady": True})
    decision = why(snapshot([spare("a", is_cordoned=True)], [web, template("low", 0, priority=0)]), "Node", "a")
    assert (decision.rule, decision.facts.higher) == ("ReservedForHigherPriority", ("web",))
    [first, _] = decision.candidates
    said = first.facts.text()
    assert said == "Cordoned, excluded by spec.eligibility.requireReady of web: the node"


def test_a_spare_of_an_idle_template_is_not_called_unneeded() -> None:
    templates = [template("dry", 1, dryRun=True), template("full", 0), template("paused", 1, paused=True)]
    decision = why(snapshot([spare("a")], templates), "Node", "a")
    assert decision.facts.text() == (
        "Spare: no template that selects it (dry, full, paused) claims it; dry, paused claim no nodes now"
    )


def test_a_higher_priority_is_advised_only_where_another_template_keeps_the_spare() -> None:
    short = template("high", 1, priority=2)
    assert remedies(why(snapshot([], [short, template("low", 1)]), "NodeTemplate", "low")) == ["AddSpares"]
    taken = why(snapshot([spare("a")], [template("high", 2, priority=2), template("low", 1)]), "NodeTemplate", "low")
    assert remedies(taken) == ["AddSpares", "RaisePriority"]
    web = template("web", 1, eligibility={"requireReady": True})
    cordoned = snapshot([spare("a", is_cordoned=True)], [web, template("low", 1, priority=0)])
    assert remedies(why(cordoned, "NodeTemplate", "low")) == ["AddSpares", "RaisePriority"]
    assert remedies(why(cordoned, "Node", "a")) == ["Uncordon", "AddSpares", "RaisePriority"]


def test_without_a_spare_of_other_labels_a_selector_change_is_not_advised() -> None:
    assert remedies(why(snapshot([], [template("web", 1)]), "NodeTemplate", "web")) == ["AddSpares"]


@pytest.mark.parametrize("role", ["control-plane", "master"])
@pytest.mark.parametrize("is_selected", [True, False])
def test_no_remedy_makes_a_control_plane_node_spare(role: str, is_selected: bool) -> None:
    labelled = node("a", labels={f"node-role.kubernetes.io/{role}": ""})
    tainted = node("a", taints=[f"node-role.kubernetes.io/{role}=:NoSchedule"])
    for given in (labelled, tainted):
        web = template("web", 1) if is_selected else template("web", 1, selector=COMPUTE)
        decision = why(snapshot([given], [web]), "Node", "a")
        assert "control-plane" in decision.facts.text()
        assert remedies(decision) == []


def test_a_mirrored_node_gets_no_advice_that_nobody_can_follow() -> None:
    decision = why(snapshot([spare("a", labels={MIRRORED_NODE: "true"})], [template("web", 1)]), "Node", "a")
    assert remedies(decision) == []


def test_a_dry_run_explains_what_it_would_do() -> None:
    decision = why(snapshot([spare("a")], [template("web", 1, dryRun=True)]), "NodeTemplate", "web")
    assert decision.facts.text() == "Dry run: would claim 1 node: a"


def test_a_paused_template_counts_its_nodes() -> None:
    decision = why(snapshot([owned("a", "web")], [template("web", 2, paused=True)]), "NodeTemplate", "web")
    assert (
        decision.facts.text()
        == "The template is paused by spec.paused or annotation nodeyard.dev/paused; it has 1 of 2 nodes"
    )


def test_a_template_that_waits_for_a_higher_one_says_how_many_it_misses() -> None:
    decision = why(snapshot([], [template("low", 2), template("high", priority=2)]), "NodeTemplate", "low")
    assert decision.facts.text().endswith("is not sufficient (high): low lacks 2 of 2 nodes")


def test_a_template_that_gives_nodes_back_names_the_pods_that_it_waits_for() -> None:
    seen = snapshot([owned("a", "web")], [template("web", 0, releasePolicy="Release")], [pod("p", "a")])
    decision = why(apply(seen, plan(seen, NOW)), "NodeTemplate", "web")
    assert decision.rule == "WaitingForPods"
    assert "default/p on a" in decision.facts.text()


def test_a_template_that_disowns_nodes_reports_that_and_no_shortage() -> None:
    mistaken = template("web", 2, selector={"matchLabels": {"typo": "x"}})
    decision = why(snapshot([owned("a", "web"), owned("b", "web")], [mistaken]), "NodeTemplate", "web")
    assert decision.facts.text() == (
        "No spare nodes found: web lacks 2 of 2 nodes after losing 2 nodes that spec.selector no longer matches"
    )
