"""The brake holds what disrupts too many nodes at once, and only that."""

import msgspec
import pytest

from nodeyard.plan.brake import Limit, brake, describe_disrupted, disrupted_nodes, parse_limit
from nodeyard.plan.identity import compute_id
from nodeyard.plan.model import Disruption, ObjectRef, Verb
from nodeyard.plan.reasons import NeedsApproval

from ...builders.plans import action, blocked, disruptive, plan, pod_ref

SMALL = Limit(nodes=2, percent=10)
THREE = tuple(disruptive(f"n{number}") for number in range(3))
HARMLESS = action("label")


def ids(actions):
    return [each.id for each in actions]


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("25,10%", Limit()),
        ("0,0%", Limit(nodes=0, percent=0)),
        ("5", Limit(nodes=5, percent=0)),
        ("5, 50%", Limit(nodes=5, percent=50)),
    ],
)
def test_a_limit_is_read_as_it_is_written(text, limit):
    assert parse_limit(text) == limit


@pytest.mark.parametrize("text", ["", "x", "25,10", "10%", "-1,5%", "25,101%", "25,10%,3"])
def test_an_invalid_limit_is_refused_with_the_expected_form(text):
    with pytest.raises(ValueError, match=r"is not N or N,P%"):
        parse_limit(text)


@pytest.mark.parametrize(
    ("disrupted", "managed", "exceeded"),
    [(25, 30, False), (26, 30, True), (26, 260, False), (26, 259, True), (1000, 100_000, False), (26, 0, True)],
)
def test_both_bounds_have_to_be_exceeded(disrupted, managed, exceeded):
    assert Limit().is_exceeded(disrupted, managed) is exceeded


def test_an_action_that_always_asks_is_held_alone_below_the_limit():
    doubtful = msgspec.structs.replace(disruptive("n9"), always_asks=True, approval_group="leaf/x")

    now, held = brake(plan(HARMLESS, *THREE, doubtful), Limit(nodes=30), managed=4)

    assert (ids(held.actions), ids(now.actions)) == ([doubtful.id], ids((HARMLESS, *THREE)))
    (blocked,) = now.blocked
    assert "1 of 4 managed nodes" in blocked.facts.text()
    assert "always needs approval" in blocked.facts.text()
    assert brake(plan(doubtful), Limit(nodes=30), managed=4, approved=(held.id,)).held is None


def test_below_the_limit_everything_runs():
    whole = plan(HARMLESS, *THREE)
    assert brake(whole, Limit(nodes=3), managed=3) == (whole, None)


def test_both_parts_of_a_plan_have_ids():
    now, held = brake(plan(HARMLESS, *THREE), SMALL, managed=10)
    assert now.id == compute_id(now)
    assert held.id not in ("", now.id)


def test_above_the_limit_the_harmless_part_runs_and_the_rest_is_held():
    refused = blocked("n9")
    now, held = brake(plan(HARMLESS, *THREE, blocked=(refused,)), SMALL, managed=10)
    assert ids(now.actions) == ["label"]
    assert ids(held.actions) == ids(THREE)
    assert now.blocked[0] == refused
    assert [(each.object.name, each.reason) for each in now.blocked[1:]] == [
        (f"n{n}", "NeedsApproval") for n in range(3)
    ]
    assert now.blocked[1].facts == NeedsApproval(id=held.id, nodes=3, managed=10, limit="2 nodes and 10%")


def test_dependents_of_a_held_action_are_held():
    last = action("last", after=("then",))
    then = action("then", after=("release-n0", "label"))
    now, held = brake(plan(HARMLESS, *THREE, then, last), SMALL, managed=10)
    assert ids(now.actions) == ["label"]
    assert ids(held.actions) == [*ids(THREE), "then", "last"]


def test_an_approved_plan_goes():
    _, held = brake(plan(HARMLESS, *THREE), SMALL, managed=10)
    now, still_held = brake(plan(HARMLESS, *THREE), SMALL, managed=10, approved={held.id})
    assert still_held is None
    assert len(now.actions) == 4


def test_approval_outlives_the_harmless_part():
    first = disruptive("n0", after=("label",))
    _, held = brake(plan(HARMLESS, first, *THREE[1:]), SMALL, managed=10)
    assert brake(plan(*THREE), SMALL, managed=10, approved={held.id}).held is None


def test_a_changed_plan_needs_another_approval():
    _, held = brake(plan(*THREE), SMALL, managed=10)
    now, again = brake(plan(*THREE, disruptive("n3")), SMALL, managed=10, approved={held.id})
    assert not now.actions
    assert again.id != held.id


def test_many_evictions_from_one_node_disrupt_one_node():
    evictions = [
        action(f"p{n}", Verb.EVICT, pod_ref(f"p{n}"), disruption=Disruption.EVICTS, disrupts=("n1",)) for n in range(50)
    ]
    assert disrupted_nodes([*evictions, disruptive("n1")]) == {"n1"}


def test_an_eviction_that_names_no_node_counts_for_itself():
    evictions = [action(f"p{n}", Verb.EVICT, pod_ref(f"p{n}"), disruption=Disruption.EVICTS) for n in range(3)]
    assert len(disrupted_nodes(evictions)) == 3


def test_an_object_with_several_held_actions_is_blocked_once():
    twice = disruptive("n0"), action("again", Verb.DELETE, disruptive("n0").object, after=("release-n0",))
    now, held = brake(plan(*twice, *THREE[1:]), SMALL, managed=10)
    assert len(held.actions) == 4
    assert [each.object.name for each in now.blocked] == ["n0", "n1", "n2"]


def test_approved_actions_are_not_counted_or_held_again():
    granted = [disruptive(f"g{number}", already_approved=True) for number in range(5)]
    assert brake(plan(*granted), SMALL, managed=5).held is None
    now, held = brake(plan(*granted, *THREE), SMALL, managed=8)
    assert ids(now.actions) == ids(granted)
    assert ids(held.actions) == ids(THREE)
    assert now.blocked[0].facts.nodes == 3


def test_an_approval_of_a_group_is_for_what_is_left_of_it_and_for_no_other():
    def steps(group, *names):
        return [disruptive(name, approval_group=group) for name in names]

    first = brake(plan(*steps("u", "n1", "n2", "n3", "n4")), SMALL, managed=4).held
    assert brake(plan(*steps("u", "n5", "n6", "n7")), SMALL, managed=4, approved=[first.id]).held is None
    other = brake(plan(*steps("v", "n1", "n2", "n3", "n4")), SMALL, managed=4, approved=[first.id]).held
    assert other.id != first.id
    more = [*steps("u", "n1"), *THREE]
    assert brake(plan(*more), SMALL, managed=4, approved=[first.id]).held is not None


def test_an_approval_of_several_groups_is_for_each_of_them():
    u, v = ([disruptive(f"{name}{number}", approval_group=name) for number in range(3)] for name in "uv")
    both = brake(plan(*u, *v), SMALL, managed=6).held
    assert brake(plan(*v), SMALL, managed=6, approved=[both.id]).held is None
    now, held = brake(plan(*u, *v, *THREE), SMALL, managed=9, approved=[both.id])
    assert ids(now.actions) == ids([*u, *v])
    assert ids(held.actions) == ids(THREE)


def test_approved_actions_do_not_wait_for_later_additions_to_their_group():
    u, v = ([disruptive(f"{name}{number}", approval_group=name) for number in range(3)] for name in "uv")
    first = brake(plan(*u), SMALL, managed=6).held
    now, held = brake(plan(*u, *v), SMALL, managed=6, approved=[first.id])
    assert ids(now.actions) == ids(u)
    assert (ids(held.actions), now.blocked[0].facts.nodes) == (ids(v), 3)


SHARED = disruptive("n1", approval_group="remove 7", group_nodes=3)


def test_a_group_of_many_plans_is_counted_by_all_its_nodes_and_approved_once():
    first, second = plan(SHARED, key="a"), plan(disruptive("n2", approval_group="remove 7", group_nodes=3), key="b")
    held = brake(first, SMALL, managed=10).held
    assert brake(second, SMALL, managed=10).held.id == held.id
    assert brake(second, SMALL, managed=10, approved=[held.id]) == (second, None)
    assert brake(first, SMALL, managed=40) == (first, None)


def test_a_group_of_many_plans_does_not_hold_other_actions_of_the_plan():
    alone = disruptive("n9")
    now, held = brake(plan(SHARED, alone), SMALL, managed=10)
    assert ids(now.actions) == ids([alone])
    assert ids(held.actions) == ids([SHARED])
    assert now.blocked[0].facts.nodes == 3


@pytest.mark.parametrize(("of", "is_held"), [(0, True), (30, False), (29, True)])
def test_a_shared_group_is_counted_against_the_nodes_it_names(of, is_held):
    shared = disruptive("n1", approval_group="roll 7", group_nodes=3, group_managed=of)
    _, held = brake(plan(shared), SMALL, managed=1)
    assert (held is not None) is is_held


def test_a_refusal_names_the_nodes_that_the_share_is_of():
    shared = disruptive("n1", approval_group="roll 7", group_nodes=3, group_managed=20)
    (refused,) = brake(plan(shared), SMALL, managed=1).now.blocked
    assert (refused.facts.nodes, refused.facts.managed) == (3, 20)


def test_other_objects_are_counted_by_kind():
    namespace = ObjectRef(api_version="v1", kind="Namespace", name="tenant-acme")
    deletion = msgspec.structs.replace(disruptive("n1"), id="gone", object=namespace)

    held = brake(plan(deletion), Limit(nodes=0, percent=0), managed=0).now.blocked[0]

    told = held.facts.text()
    assert told.startswith("held: 1 Namespace would be disrupted, more than the limit of 0 nodes; ")
    assert describe_disrupted([deletion]) == "1 Namespace"
    assert describe_disrupted([disruptive("n1")]) == "1 node"
    assert describe_disrupted([disruptive("n1"), disruptive("n2"), deletion]) == "2 nodes and 1 Namespace"
