"""Spares get the spare label."""

from __future__ import annotations

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.kube.names import MIRRORED_NODE
from nodeyard.kube.objects import Node

from ....builders.spares import NOW, apply, find, node, owned, snapshot, template

TAINT = f"{names.SPARE_TAINT}=true:NoSchedule"


def after(given: Node) -> Node:
    seen = snapshot([given])
    return find(apply(seen, plan(seen, NOW)), given.metadata.name)


def test_a_node_with_the_taint_gets_the_label_and_a_note_that_it_is_ours() -> None:
    labelled = after(node("a", taints=[TAINT]))
    assert labelled.metadata.labels == {names.SPARE_LABEL: "true"}
    assert labelled.metadata.annotations == {names.LABELLED: "true"}


def test_the_value_and_effect_of_the_taint_do_not_matter() -> None:
    assert names.SPARE_LABEL in after(node("a", taints=[f"{names.SPARE_TAINT}:PreferNoSchedule"])).metadata.labels


def test_another_value_of_the_label_is_put_right() -> None:
    assert after(node("a", taints=[TAINT], labels={names.SPARE_LABEL: ""})).metadata.labels[names.SPARE_LABEL] == "true"


def test_our_label_goes_with_the_taint() -> None:
    left = after(node("a", labels={names.SPARE_LABEL: "true"}, annotations={names.LABELLED: "true"}))
    assert (left.metadata.labels, left.metadata.annotations) == ({}, {})


def test_a_label_of_others_stays() -> None:
    assert not plan(snapshot([node("a", labels={names.SPARE_LABEL: "true"})]), NOW).plan.actions


def test_a_label_removed_by_hand_is_restored() -> None:
    lost = node("a", taints=[TAINT], annotations={names.LABELLED: "true"})
    assert after(lost).metadata.labels[names.SPARE_LABEL] == "true"


def test_a_mirrored_node_is_not_labelled() -> None:
    assert not plan(snapshot([node("a", taints=[TAINT], labels={MIRRORED_NODE: "true"})]), NOW).plan.actions


def test_a_node_that_names_an_unknown_template_is_labelled_and_not_claimed() -> None:
    seen = snapshot([owned("a", "gone", taints=[TAINT])], [template("web")])
    assert [action.reason for action in plan(seen, NOW).plan.actions] == ["SpareLabelled"]


def test_a_label_is_patched_without_a_precondition() -> None:
    planned = plan(snapshot([node("a", taints=[TAINT])]), NOW)
    [action] = planned.plan.actions
    assert planned.write(action).resource_version == ""


def test_no_label_changes_if_all_templates_are_dry_runs() -> None:
    fleet = [
        node("a", taints=[TAINT]),
        node("b", labels={names.SPARE_LABEL: "true"}, annotations={names.LABELLED: "1"}),
    ]
    assert not plan(snapshot(fleet, [template("web", dryRun=True), template("db", dryRun=True)]), NOW).plan.actions
    assert len(plan(snapshot(fleet, [template("web", 0), template("db", dryRun=True)]), NOW).plan.actions) == 2
    assert len(plan(snapshot(fleet), NOW).plan.actions) == 2
