"""The brake for any plan: it holds every disruptive action above the limit, and no independent harmless one."""

from hypothesis import given
from hypothesis import strategies as st

from nodeyard.plan.brake import Limit, brake, disrupted_nodes, is_disruptive
from nodeyard.plan.model import Disruption

from ..builders.plans import action, node_ref, plan


@st.composite
def plans(draw):
    count = draw(st.integers(0, 12))
    actions = []
    for number in range(count):
        after = draw(st.sets(st.sampled_from(range(number)), max_size=2)) if number else set()
        actions.append(
            action(
                f"a{number}",
                object=node_ref(f"n{draw(st.integers(0, 8))}"),
                disruption=draw(st.sampled_from(Disruption)),
                after=tuple(f"a{each}" for each in sorted(after)),
            )
        )
    return plan(*draw(st.permutations(actions)))


LIMITS = st.builds(Limit, nodes=st.integers(0, 6), percent=st.integers(0, 100))
MANAGED = st.integers(0, 20)


@given(plans(), LIMITS, MANAGED)
def test_no_disruptive_action_passes_unapproved_above_the_limit(one, limit, managed):
    now, held = brake(one, limit, managed)
    disrupted = len(disrupted_nodes(one.actions))
    if limit.is_exceeded(disrupted, managed):
        assert not any(map(is_disruptive, now.actions))
        assert held is not None
    else:
        assert held is None


@given(plans(), LIMITS, MANAGED)
def test_below_the_limit_nothing_is_held(one, limit, managed):
    now, held = brake(one, limit, managed)
    if held is None:
        assert now.actions == one.actions
        assert now.blocked == one.blocked


@given(plans(), LIMITS, MANAGED)
def test_no_action_is_lost_and_none_runs_twice(one, limit, managed):
    now, held = brake(one, limit, managed)
    parts = [*now.actions, *(held.actions if held else ())]
    assert sorted(each.id for each in parts) == sorted(each.id for each in one.actions)


@given(plans(), LIMITS, MANAGED)
def test_harmless_actions_wait_for_held_ones_only_by_after(one, limit, managed):
    now, held = brake(one, limit, managed)
    held_ids = {each.id for each in held.actions} if held else set()
    for each in held.actions if held else ():
        assert is_disruptive(each) or held_ids & set(each.after)
    for each in now.actions:
        assert not held_ids & set(each.after)


@given(plans(), LIMITS, MANAGED)
def test_the_shown_id_is_the_one_that_approves_it(one, limit, managed):
    now, held = brake(one, limit, managed)
    if held is not None:
        assert {each.facts.id for each in now.blocked} == {held.id}
        assert brake(one, limit, managed, {held.id}).held is None
        assert brake(one, limit, managed, {"another"}).held == held
