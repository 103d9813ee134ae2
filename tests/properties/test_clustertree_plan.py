"""For any leaf, models and root: plans converge, and change only nodes of the Cluster."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nodeyard.capabilities.clustertree.leases.inputs import node_lease_inputs
from nodeyard.capabilities.clustertree.planning import models
from nodeyard.capabilities.clustertree.planning import nodes as node_plans
from nodeyard.capabilities.clustertree.planning.ownership import is_mirror_of
from nodeyard.kube.quantity import parse
from nodeyard.plan.model import Action, Planned, Verb

from ..builders.tree_state import (
    NOW,
    TreeState,
    alive,
    cluster,
    condition,
    failing,
    leaf,
    leaf_node,
    lease,
    left_by_kosmos,
    lost,
    node_model,
    rejecting,
    root_node,
    selector_model,
    unreached_leaf,
    used,
    whole_model,
)

NAMES = ("n1", "n2", "n3", "kosmos-east", "kosmos-a-0", "kosmos-a-1")
POOLS = ("x", "y", "")

taints = st.lists(st.sampled_from(["a=1:NoSchedule", "a=2:NoExecute", "b:NoSchedule"]), max_size=2, unique=True)
labels = st.dictionaries(st.sampled_from(["disk", "team", "kosmos.io/node"]), st.sampled_from(["1", "2"]), max_size=2)
leaf_models = st.one_of(
    st.builds(whole_model, labels=labels, taints=taints),
    st.builds(node_model, st.sampled_from(NAMES[:4]), labels=labels, taints=taints),
    st.builds(
        lambda name, pool: selector_model(name, pool=pool), st.sampled_from(["a", "b", "A!"]), st.sampled_from(POOLS)
    ),
    st.builds(lambda name: selector_model(name, {}), st.sampled_from(["a", "b"])),
)
clusters = st.builds(
    lambda those, enable, largest, reserve: cluster(
        "east", *those, enable=enable, resources={"largestFree": largest, "reservePercent": reserve}
    ),
    st.lists(leaf_models, max_size=4),
    st.sampled_from([True, True, True, False]),
    st.booleans(),
    st.sampled_from([0, 10]),
)
leaf_nodes = st.builds(
    lambda name, ready, is_cordoned, taints, pool, extra: leaf_node(
        name,
        ready=ready,
        is_cordoned=is_cordoned,
        taints=taints,
        conditions=[condition("KernelDeadlock", "False")] if extra else (),
        **({"pool": pool} if pool else {}),
    ),
    st.sampled_from(NAMES[:4]),
    st.sampled_from(["True", "False", "Unknown"]),
    st.booleans(),
    taints,
    st.sampled_from(POOLS),
    st.booleans(),
)
usages = st.dictionaries(st.sampled_from(NAMES[:3]), st.builds(lambda n: used(n, cpu=f"{n * 700}m"), st.integers(0, 9)))
healths = st.sampled_from([alive(), lost(), lost(is_rejected=True), failing(), rejecting()])
leaves = st.one_of(
    st.builds(
        lambda nodes, usage, health, is_connected, is_leased: leaf(
            *{each.name: each for each in nodes}.values(),
            used=usage,
            health=health,
            is_connected=is_connected,
            leases={"n1": lease(NOW)} if is_leased else {},
        ),
        st.lists(leaf_nodes, max_size=4),
        usages,
        healths,
        st.booleans(),
        st.booleans(),
    ),
    st.builds(lambda health: unreached_leaf(health=health), healths),
)
roots = st.dictionaries(
    st.sampled_from(NAMES),
    st.sampled_from(["stranger", "half", "of kosmos", "of west"]),
    max_size=3,
)


def make_root(name: str, kind: str):
    match kind:
        case "of kosmos":
            return left_by_kosmos(name, taints=["old=1:NoSchedule"], labels={"disk": "1"})
        case "of west":
            return left_by_kosmos(name, "west")
        case "half":
            return root_node(name, annotations={"kosmos-io/owned-by-cluster": "east"})
    return root_node(name)


tree_states = st.builds(
    lambda own, state, given_roots: TreeState(own, state).with_roots(
        *(make_root(*each) for each in given_roots.items())
    ),
    clusters,
    leaves,
    roots,
)


def check(tree: TreeState, planned: Planned, own: str) -> None:
    """Assert that all actions are on nodes of the Cluster, and that no two actions on one node conflict."""
    for action in planned.plan.actions:
        if action.object.kind != "Node":
            continue
        node = tree.roots.get(action.object.name)
        if action.verb is Verb.CREATE:
            assert node is None
        else:
            assert node is not None
            assert is_mirror_of(node, own)
            assert action.object.uid == node.metadata.uid
    guarded: dict[str, list[Action]] = {}
    for action in planned.plan.actions:
        if planned.write(action).resource_version:
            guarded.setdefault(action.object.name, []).append(action)
    assert all(first.id in second.after for each in guarded.values() for first, second in pairwise(each))
    assert all(each.diff for each in planned.plan.actions if each.verb is not Verb.DELETE)


def run(tree: TreeState, own: str = "east") -> TreeState:
    """Plan and apply until nothing is left to do."""
    for _ in range(5):
        planned = tree.plan()
        check(tree, planned, own)
        if not planned.plan.actions:
            return tree
        tree = tree.after(planned)
        if planned.is_final:
            assert not tree.plan().plan.actions
    raise AssertionError(f"does not come to rest: {[each.id for each in planned.plan.actions]}")


@given(tree_states)
def test_plans_converge_and_touch_only_nodes_of_their_cluster(tree):
    settled = run(tree)

    assert settled.plan().plan.actions == ()


@given(tree_states, st.lists(st.tuples(clusters, leaves, st.integers(2, 90)), min_size=1, max_size=3))
def test_plans_converge_however_cluster_and_leaf_change(tree, changes):
    for own, state, seconds in changes:
        tree = run(tree).with_(cluster=own, leaf=state).later(seconds)

    settled = run(tree)

    foreign = {name: node for name, node in tree.roots.items() if not is_mirror_of(node, "east")}
    assert {name: settled.roots[name] for name in foreign} == foreign


@given(tree_states, st.lists(st.tuples(clusters, leaves), max_size=2))
def test_memory_of_the_last_plan_changes_nothing(tree, changes):
    for own, state in changes:
        tree = run(tree).with_(cluster=own, leaf=state).later(2)
    warm = tree.plan()
    node_plans._known.clear()
    models._known.clear()

    assert tree.plan() == warm


@given(tree_states)
def test_equal_snapshots_make_equal_plans(tree):
    assert tree.plan() == tree.plan()


@given(tree_states)
def test_every_node_that_is_ours_has_its_lease_and_no_other(tree):
    leased = {each.name: each.uid for each in node_lease_inputs(tree.snapshot(), tree.now)}

    assert leased == {name: node.metadata.uid for name, node in tree.roots.items() if is_mirror_of(node, "east")}


@given(clusters, leaves)
def test_no_leaf_node_is_counted_twice(own, state):
    offered = [node.status.capacity.get("cpu", "0") for node in run(TreeState(own, state)).roots.values()]

    assert sum(parse(each).milli() for each in offered) <= 4000 * len(state.nodes)


@given(clusters, st.lists(leaf_models, max_size=3), leaves)
def test_no_leaf_node_is_counted_by_two_clusters_of_one_leaf(own, models_of_earlier, state):
    earlier = cluster("west", *models_of_earlier)
    first = run(TreeState(earlier, state), "west")

    both = run(TreeState(own, state, roots=first.roots, earlier_clusters=(earlier,)))

    offered = [node.status.capacity.get("cpu", "0") for node in both.roots.values()]
    assert sum(parse(each).milli() for each in offered) <= 4000 * len(state.nodes)
    assert {name: both.roots[name] for name in first.roots} == first.roots


@given(tree_states, st.lists(leaf_models, max_size=3), st.booleans())
def test_plans_converge_when_an_earlier_cluster_is_added_and_removed(tree, models_of_earlier, is_whole):
    earlier = cluster("west", *models_of_earlier, *([whole_model()] if is_whole else []))

    between = run(run(tree).with_(earlier_clusters=(earlier,)).later(2))

    assert run(between.with_(earlier_clusters=()).later(2)).plan().plan.actions == ()
