"""Nodes that the selector no longer matches move out of management unchanged."""

from __future__ import annotations

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.planning.node_patch import digest_of
from nodeyard.capabilities.spares.report import report
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.kube.objects import Node
from nodeyard.plan.brake import Limit, brake

from ....builders.spares import (
    NOW,
    apply,
    born,
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
        names.RECORD_DIGEST: digest_of(after.metadata.annotations[names.RECORD]),
        "tier": "web",
        names.role_label("web"): "true",
        names.OUT_LABEL: "web",
        names.OUT_ROLE_LABEL: "true",
    }


def test_it_is_replaced_in_the_same_pass() -> None:
    nodes = [owned("a", "web"), spare("b", labels={"role": "compute"})]
    after = apply(seen := snapshot(nodes, [template("web", selector=COMPUTE)]), plan(seen, NOW))
    assert {each.metadata.name: owner_of(each) for each in after.nodes} == {"a": None, "b": "web"}


TIERED = described(labels={"tier": "web"}, taints=["dedicated=web:NoSchedule"])


def disowned(*spares: Node) -> SparesSnapshot:
    """Return the nodes, claimed by web and then moved out of management by its selector."""
    first, _ = converge(snapshot(spares or [spare("a")], [template("web", len(spares) or 1, template=TIERED)]))
    return converge(SparesSnapshot(first.nodes, [template("web", selector=COMPUTE, template=TIERED)]))[0]


def test_its_record_stays() -> None:
    after = find(disowned(), "a")
    assert owner_of(after) is None
    assert names.RECORD in after.metadata.annotations
    assert after.metadata.labels["tier"] == "web"


def test_it_is_taken_back_as_it_was_when_the_selector_matches_again() -> None:
    given = [template("web", 1, template=TIERED)]
    before, _ = converge(snapshot([spare("a")], given))
    after, _ = converge(SparesSnapshot(disowned().nodes, given))
    was, now = find(before, "a"), find(after, "a")
    assert (was.metadata.labels, was.metadata.annotations) == (now.metadata.labels, now.metadata.annotations)
    released, _ = converge(SparesSnapshot(after.nodes, [template("web", 0, releasePolicy="Release")]))
    assert "tier" not in find(released, "a").metadata.labels


def test_it_is_taken_back_before_a_spare_is_claimed_up_to_spec_nodes() -> None:
    seen = disowned(spare("b"), spare("c"))
    again = SparesSnapshot([spare("a"), *seen.nodes], [template("web", 1, template=TIERED)])
    assert [(each.object.name, each.reason) for each in plan(again, NOW).plan.actions] == [("b", "TakenBack")]


def test_another_template_of_the_same_name_does_not_take_it_back() -> None:
    other = template("web", 1, template=TIERED, metadata={"uid": "another"})
    assert not plan(SparesSnapshot(disowned().nodes, [other]), NOW).plan.actions


def test_a_node_without_our_record_is_not_taken_back() -> None:
    after, _ = converge(snapshot([born("a", "web")], [template("web", selector=COMPUTE)]))
    assert not plan(SparesSnapshot(after.nodes, [template("web")]), NOW).plan.actions


def test_one_that_would_leave_again_by_the_templates_own_labels_is_not_taken_back() -> None:
    defeating = template("web", 1, template=TIERED, selector={"matchLabels": {"tier": "db"}})
    nodes = [msgspec.structs.replace(each) for each in disowned().nodes]
    nodes[0].metadata.labels["tier"] = "db"
    assert not plan(SparesSnapshot(nodes, [defeating]), NOW).plan.actions


def test_many_at_once_wait_for_approval_together_with_what_would_replace_them() -> None:
    first, _ = converge(snapshot([spare(f"a{number}") for number in range(4)], [template("web", 4)]))
    others = [spare(f"b{number}", labels={"role": "compute"}) for number in range(6)]
    typo = template("web", 5, selector=COMPUTE)
    seen = SparesSnapshot([*first.nodes, *others], [typo])
    planned = plan(seen, NOW)
    now, held = brake(planned.plan, Limit(nodes=3, percent=10), 4)
    assert held is not None
    # The fifth node is wanted anyway; the others would replace held ones.
    assert [action.object.name for action in now.actions] == ["b0"]
    assert {action.reason for action in held.actions} == {"MovedOut", "Claimed"}
    assert len(held.actions) == 8
    done = Outcome(results=tuple(ActionResult(action=action, result=Result.DONE) for action in now.actions))
    [write] = report(seen, now, done, NOW).statuses
    assert write.status["currentNodes"] == 5
    assert write.status["conditions"][0]["status"] == "True"


def test_a_deleted_template_waits_for_approval_before_it_detaches_many() -> None:
    first, _ = converge(snapshot([spare(f"a{number}") for number in range(4)], [template("web", 4)]))
    going = template("web", 4, metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})
    planned = plan(SparesSnapshot([*first.nodes, born("unclaimed", "web")], [going]), NOW)
    now, held = brake(planned.plan, Limit(nodes=3, percent=10), 4)
    assert held is not None
    assert [(action.object.name, action.reason) for action in now.actions] == [("unclaimed", "Detached")]
    assert [action.reason for action in held.actions] == ["Detached"] * 4 + ["FinalizerRemoved"]
    assert brake(planned.plan, Limit(nodes=4, percent=10), 4).held is None
    assert brake(planned.plan, Limit(nodes=3, percent=10), 4, [held.id]).held is None


def test_a_few_are_not_held() -> None:
    first, _ = converge(snapshot([spare("a")], [template("web", 1)]))
    planned = plan(SparesSnapshot(first.nodes, [template("web", selector=COMPUTE)]), NOW)
    assert brake(planned.plan, Limit(nodes=3, percent=10), 1).held is None


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


def test_a_deleted_malformed_template_loses_its_finalizer_and_its_nodes_stay() -> None:
    going = unread("web", is_deleting=True, finalizers=("other.io/hook", names.FINALIZER))
    planned = plan(snapshot([owned("a", "web")], malformed={"web": going}), NOW)
    [action] = planned.plan.actions
    assert (action.object.kind, action.object.name, action.reason) == (names.KIND, "web", "Abandoned")
    assert planned.write(action).body == {"metadata": {"finalizers": ["other.io/hook"]}}
    assert planned.write(action).resource_version == "7"


def test_a_template_that_cannot_be_read_is_not_touched_while_it_is_not_deleted_or_not_ours_to_keep() -> None:
    for each in (unread("web", finalizers=(names.FINALIZER,)), unread("web", is_deleting=True)):
        assert not plan(snapshot([owned("a", "web")], malformed={"web": each}), NOW).plan.actions
