"""Templates claim missing nodes from the spares."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.planning.node_patch import digest_of
from nodeyard.kube.names import MIRRORED_NODE, POOL_DRAINING

from ....builders.spares import NOW, apply, described, find, node, owned, owner_of, pod, snapshot, spare, template


def claims(seen: Any) -> dict[str, str]:
    """Return the template that claims each node."""
    return {
        action.object.name: action.facts.template
        for action in plan(seen, NOW).plan.actions
        if action.reason == "Claimed"
    }


def test_a_template_claims_as_many_spares_as_it_misses() -> None:
    seen = snapshot([spare("a"), spare("b"), spare("c"), owned("d", "web")], [template("web", 3)])
    assert claims(seen) == {"a": "web", "b": "web"}


def test_claim_and_configuration_are_one_patch_bound_to_what_was_seen() -> None:
    wanted = described(labels={"tier": "web"}, annotations={"for": "bar"}, taints=["dedicated=web:NoSchedule"])
    planned = plan(snapshot([spare("a", taints=["other:NoExecute"])], [template("web", 1, template=wanted)]), NOW)
    [action] = planned.plan.actions
    write = planned.write(action)
    text = write.body["metadata"]["annotations"].pop(names.RECORD)
    record = msgspec.json.decode(text)
    assert write.resource_version == "1"
    assert write.body == {
        "metadata": {
            "labels": {
                names.TEMPLATE_LABEL: "web",
                "node-role.kubernetes.io/web": "true",
                "tier": "web",
                names.SPARE_LABEL: None,
                names.RECORD_DIGEST: digest_of(text),
            },
            "annotations": {"for": "bar", names.LABELLED: None},
        },
        "spec": {
            "taints": [
                {"key": "other", "effect": "NoExecute"},
                {"key": "dedicated", "value": "web", "effect": "NoSchedule"},
            ]
        },
    }
    assert record["spareTaints"] == [f"{names.SPARE_TAINT}=true:NoSchedule"]
    assert record["taints"] == ["dedicated=web:NoSchedule"]


def test_a_node_about_to_be_claimed_is_not_labelled_first() -> None:
    fresh = node("a", taints=[f"{names.SPARE_TAINT}=true:NoSchedule"])
    [action] = plan(snapshot([fresh], [template("web")]), NOW).plan.actions
    assert action.reason == "Claimed"


def test_the_least_used_zone_comes_first_and_names_break_ties() -> None:
    nodes = [spare("a1", zone="a"), spare("a2", zone="a"), spare("b1", zone="b"), owned("x", "web", zone="a")]
    assert list(claims(snapshot(nodes, [template("web", 3)]))) == ["b1", "a1"]


def test_nodes_without_a_zone_come_last() -> None:
    nodes = [spare("a"), spare("z1", zone="z"), spare("z2", zone="z")]
    assert list(claims(snapshot(nodes, [template("web", 3)]))) == ["z1", "z2", "a"]


def test_another_topology_key_spreads_over_its_values() -> None:
    nodes = [spare(name, zone="same", labels={"rack": rack}) for name, rack in (("a", "1"), ("b", "1"), ("c", "2"))]
    seen = snapshot(nodes, [template("web", 2, spread={"topologyKey": "rack"})])
    assert list(claims(seen)) == ["a", "c"]


def test_the_higher_priority_chooses_first() -> None:
    seen = snapshot([spare("a")], [template("low", priority=1), template("high", priority=2)])
    assert claims(seen) == {"a": "high"}


def test_among_equals_the_name_decides() -> None:
    seen = snapshot([spare("a")], [template("b-second"), template("a-first")])
    assert claims(seen) == {"a": "a-first"}


def test_a_node_is_spare_by_a_label_that_others_set() -> None:
    seen = snapshot([node("a", labels={names.SPARE_LABEL: "true"})], [template("web")])
    assert claims(seen) == {"a": "web"}


def test_a_node_without_the_spare_taint_is_not_spare_by_our_label() -> None:
    left = node("a", labels={names.SPARE_LABEL: "true"}, annotations={names.LABELLED: "true"})
    assert claims(snapshot([left], [template("web")])) == {}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"labels": {MIRRORED_NODE: "true"}}, id="mirrors-a-leaf"),
        pytest.param({"annotations": {POOL_DRAINING: "true"}}, id="drained-by-a-pool"),
        pytest.param({"is_deleting": True}, id="being-deleted"),
        pytest.param({"labels": {names.TEMPLATE_LABEL: ""}}, id="names-an-empty-owner"),
    ],
)
def test_a_spare_that_no_template_may_claim_is_skipped(given: dict[str, Any]) -> None:
    assert claims(snapshot([spare("a", **given)], [template("web")])) == {}


def test_readiness_is_not_looked_at_unless_asked_for() -> None:
    assert claims(snapshot([spare("a", is_ready=False)], [template("web")])) == {"a": "web"}


def test_a_required_readiness_refuses_the_others_by_name() -> None:
    seen = snapshot([spare("a", is_ready=False)], [template("web", eligibility={"requireReady": True})])
    blocked = {each.reason: msgspec.to_builtins(each.facts) for each in plan(seen, NOW).plan.blocked}
    assert blocked["NotReady"] == {"count": 1, "nodes": ("a",), "template": "web"}


def test_required_emptiness_counts_workload_only() -> None:
    pods = [pod("p", "a"), pod("d", "b", owner="DaemonSet"), pod("f", "c", phase="Succeeded")]
    seen = snapshot(
        [spare("a"), spare("b"), spare("c")], [template("web", 3, eligibility={"requireEmpty": True})], pods
    )
    assert claims(seen) == {"b": "web", "c": "web"}


def test_while_pods_are_not_known_no_node_counts_as_empty() -> None:
    seen = snapshot([spare("a")], [template("web", eligibility={"requireEmpty": True})], pods=None)
    assert claims(seen) == {}
    assert "PodsUnknown" in {each.reason for each in plan(seen, NOW).plan.blocked}


def test_a_selector_that_the_claim_itself_would_break_claims_nothing() -> None:
    selector = {"matchLabels": {names.SPARE_LABEL: "true"}}
    planned = plan(snapshot([spare("a")], [template("web", selector=selector)]), NOW)
    assert not planned.plan.actions
    assert "SelectorWouldNotMatch" in {each.reason for each in planned.plan.blocked}


def test_an_old_note_that_the_node_fell_out_of_management_goes_with_the_claim() -> None:
    labels = {names.OUT_LABEL: "old", names.OUT_ROLE_LABEL: "true"}
    seen = snapshot([spare("a", labels=labels)], [template("web")])
    after = find(apply(seen, plan(seen, NOW)), "a")
    assert owner_of(after) == "web"
    assert names.OUT_LABEL not in after.metadata.labels


def test_the_finalizer_comes_before_the_first_claim() -> None:
    seen = snapshot([spare("a")], [template("web", metadata={"finalizers": ["other"]})])
    planned = plan(seen, NOW)
    finalizer, claim = planned.plan.actions
    assert planned.write(finalizer).body == {"metadata": {"finalizers": ["other", names.FINALIZER]}}
    assert planned.write(finalizer).resource_version == "1"
    assert claim.after == (finalizer.id,)


def test_several_spare_taints_go_in_one_pass() -> None:
    twice = spare("a", taints=[f"{names.SPARE_TAINT}:NoExecute"])
    seen = snapshot([twice], [template("web")])
    assert find(apply(seen, plan(seen, NOW)), "a").spec.taints == ()


def test_nodes_that_look_alike_share_one_change() -> None:
    planned = plan(snapshot([spare("a"), spare("b")], [template("web", 2)]), NOW)
    first, second = (planned.write(action) for action in planned.plan.actions)
    assert first.body is second.body
