"""Nodes that the selector does not match any more leave as they are."""

from __future__ import annotations

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.snapshot import SparesSnapshot

from ....builders.spares import (
    NOW,
    apply,
    converge,
    described,
    find,
    owned,
    owner_of,
    snapshot,
    spare,
    template,
    unread,
)

COMPUTE = {"matchLabels": {"role": "compute"}}


def test_a_node_that_does_not_match_is_marked_and_loses_only_its_owner() -> None:
    seen = snapshot([owned("a", "web", labels={"tier": "web"})], [template("web", selector=COMPUTE)])
    after = find(apply(seen, plan(seen, NOW)), "a")
    assert after.metadata.labels == {
        "tier": "web",
        names.role_label("web"): "true",
        names.OUT_LABEL: "web",
        names.OUT_ROLE_LABEL: "true",
    }


def test_it_is_replaced_in_the_same_pass() -> None:
    nodes = [owned("a", "web"), spare("b", labels={"role": "compute"})]
    after = apply(seen := snapshot(nodes, [template("web", selector=COMPUTE)]), plan(seen, NOW))
    assert {each.metadata.name: owner_of(each) for each in after.nodes} == {"a": None, "b": "web"}


def test_it_is_not_taken_back_when_it_matches_again() -> None:
    after, _ = converge(snapshot([owned("a", "web")], [template("web", selector=COMPUTE)]))
    again = SparesSnapshot(after.nodes, [template("web")])
    assert not plan(again, NOW).plan.actions


def test_its_record_goes_with_the_owner() -> None:
    first, _ = converge(snapshot([spare("a")], [template("web", template=described(labels={"tier": "web"}))]))
    after, _ = converge(SparesSnapshot(first.nodes, [template("web", selector=COMPUTE)]))
    assert names.RECORD not in find(after, "a").metadata.annotations
    assert find(after, "a").metadata.labels["tier"] == "web"


def test_a_node_that_names_an_unknown_template_is_left_until_that_appears() -> None:
    seen = snapshot([owned("a", "later")], [template("web", 0)])
    assert not plan(seen, NOW).plan.actions
    adopted = SparesSnapshot(seen.nodes, [template("later", template=described(labels={"tier": "web"}))])
    assert [action.reason for action in plan(adopted, NOW).plan.actions] == ["Updated"]


def test_the_nodes_of_a_template_that_cannot_be_read_are_left_alone() -> None:
    seen = snapshot([owned("a", "web")], malformed={"web": unread("web")})
    planned = plan(seen, NOW)
    assert not planned.plan.actions
    assert [(each.object.name, each.reason) for each in planned.plan.blocked] == [("web", "InvalidTemplate")]


def test_a_template_that_cannot_be_read_is_let_go_when_it_is_deleted_and_its_nodes_stay() -> None:
    going = unread("web", is_deleting=True, finalizers=("other.io/hook", names.FINALIZER))
    planned = plan(snapshot([owned("a", "web")], malformed={"web": going}), NOW)
    [action] = planned.plan.actions
    assert (action.object.kind, action.object.name, action.reason) == (names.KIND, "web", "Abandoned")
    assert planned.write(action).body == {"metadata": {"finalizers": ["other.io/hook"]}}
    assert planned.write(action).resource_version == "7"


def test_a_template_that_cannot_be_read_is_not_touched_while_it_is_not_deleted_or_not_ours_to_keep() -> None:
    for each in (unread("web", finalizers=(names.FINALIZER,)), unread("web", is_deleting=True)):
        assert not plan(snapshot([owned("a", "web")], malformed={"web": each}), NOW).plan.actions
