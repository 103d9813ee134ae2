"""The order of actions with any dependencies and results."""

from hypothesis import given
from hypothesis import strategies as st

from nodeyard.apply.action_graph import ActionGraph

from ...builders.plans import action


@st.composite
def webs(draw):
    """Generate actions with any dependencies, also on themselves and on unknown ones."""
    names = [f"a{number}" for number in range(draw(st.integers(0, 7)))]
    return [
        action(name, after=tuple(draw(st.lists(st.sampled_from([*names, "nobody"]), max_size=2)))) for name in names
    ]


def walk(graph, fails):
    """Start and end actions like an applier; return the started ones in order, and the skipped ones."""
    started, skipped = [], set()
    ready = graph.roots()
    while ready:
        current = ready.pop(0)
        started.append(current.id)
        if current.id in fails:
            skipped |= {each.id for each in graph.dependents_of(current)}
        else:
            ready += graph.complete(current)
    return started, skipped


@given(webs(), st.sets(st.sampled_from([f"a{number}" for number in range(7)])))
def test_every_action_is_started_once_or_skipped_for_a_reason(actions, fails):
    graph = ActionGraph(actions)
    never = {each.id for each, _ in graph.unreachable()}
    started, skipped = walk(graph, fails)
    assert len(started) == len(set(started))
    assert set(started) | skipped | never == {each.id for each in actions}
    assert not set(started) & (skipped | never)


@given(webs(), st.sets(st.sampled_from([f"a{number}" for number in range(7)])))
def test_an_action_starts_only_after_all_it_comes_after_have_succeeded(actions, fails):
    after = {each.id: each.after for each in actions}
    started, _ = walk(ActionGraph(actions), fails)
    for position, each in enumerate(started):
        assert set(after[each]) <= set(started[:position]) - fails


@given(webs())
def test_unreachable_actions_report_why(actions):
    for each, why in ActionGraph(actions).unreachable():
        assert why.startswith("depends on ")
        assert each.after


@given(webs())
def test_no_more_are_ever_ready_at_once_than_its_width(actions):
    graph = ActionGraph(actions)
    width = graph.width
    ready = graph.roots()
    while ready:
        assert len(ready) <= width
        ready = ready[1:] + graph.complete(ready[0])


def test_a_chain_is_one_wide():
    assert ActionGraph([action("a"), action("b", after=("a",)), action("c", after=("b",))]).width == 1
