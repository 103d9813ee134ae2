"""Invariants of every plan of spares."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.planning.partition import Spare
from nodeyard.capabilities.spares.planning.releases import SETTLE
from nodeyard.capabilities.spares.planning.templates import Resolved, can_overlap
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, is_spare
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.kube.names import MIRRORED_NODE, POOL_DRAINING, ZONE
from nodeyard.kube.objects import Node, Pod
from nodeyard.kube.selectors import from_object

from ..builders.spares import NOW, apply, converge, described, node, owned, owner_of, pod, snapshot, spare, template

ROLES = ("compute", "storage")
ZONES = ("", "z1", "z2", "z3")
TEMPLATES = ("t1", "t2", "t3")

selectors = st.one_of(
    st.just({}),
    st.sampled_from(ROLES).map(lambda role: {"matchLabels": {"role": role}}),
    st.tuples(st.sampled_from(("In", "NotIn")), st.lists(st.sampled_from(ROLES), min_size=1, unique=True)).map(
        lambda pair: {"matchExpressions": [{"key": "role", "operator": pair[0], "values": pair[1]}]}
    ),
    st.sampled_from(("Exists", "DoesNotExist")).map(
        lambda operator: {"matchExpressions": [{"key": "role", "operator": operator}]}
    ),
)

contents = st.builds(
    described,
    labels=st.dictionaries(st.sampled_from(("tier", "size")), st.sampled_from(("a", "b")), max_size=2),
    annotations=st.dictionaries(st.just("for"), st.sampled_from(("x", "y"))),
    taints=st.lists(st.sampled_from(("d=1:NoSchedule", "e=1:NoExecute", "d=2:NoExecute")), unique=True, max_size=2),
)


@st.composite
def templates(draw: st.DrawFn, name: str) -> NodeTemplate:
    spec: dict[str, Any] = {
        "selector": draw(selectors),
        "priority": draw(st.integers(0, 2)),
        "template": draw(contents),
        "dryRun": draw(st.sampled_from((None, None, None, True))),
        "paused": draw(st.sampled_from((False, False, False, True))),
        "prune": draw(st.booleans()),
        "releasePolicy": draw(st.sampled_from(("Retain", "Release"))),
        "eligibility": {"requireReady": draw(st.booleans()), "requireEmpty": draw(st.booleans())},
        "metadata": {"finalizers": draw(st.sampled_from(([], [names.FINALIZER])))},
    }
    if draw(st.integers(0, 9)) == 0:
        spec["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return template(name, draw(st.integers(0, 5)), **spec)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    labels: dict[str, str] = {}
    if draw(st.booleans()):
        labels["role"] = draw(st.sampled_from(ROLES))
    if draw(st.booleans()):
        labels["tier"] = draw(st.sampled_from(("a", "z")))
    annotations = draw(st.sampled_from(({}, {}, {}, {}, {POOL_DRAINING: "true"})))
    if draw(st.integers(0, 9)) == 0:
        labels[MIRRORED_NODE] = "true"
    common: dict[str, Any] = {
        "zone": draw(st.sampled_from(ZONES)),
        "labels": labels,
        "annotations": annotations,
        "taints": draw(st.lists(st.sampled_from(("d=0:NoSchedule", "their=1:NoSchedule")), unique=True)),
        "is_ready": draw(st.booleans()),
        "is_cordoned": draw(st.sampled_from((False, False, True))),
    }
    kind = draw(st.sampled_from(("spare", "spare", "spare", "fresh", "owned", "other")))
    if kind == "owned":
        return owned(name, draw(st.sampled_from((*TEMPLATES, "gone"))), **common)
    if kind == "fresh":
        return node(name, **{**common, "taints": [*common["taints"], f"{names.SPARE_TAINT}=true:NoSchedule"]})
    return spare(name, **common) if kind == "spare" else node(name, **common)


@st.composite
def worlds(draw: st.DrawFn) -> SparesSnapshot:
    fleet = [draw(nodes(f"n{number}")) for number in range(draw(st.integers(0, 10)))]
    wanted = [draw(templates(name)) for name in TEMPLATES[: draw(st.integers(1, 3))]]
    pods: list[Pod] = [pod(f"p-{each.metadata.name}", each.metadata.name) for each in fleet if draw(st.booleans())]
    return snapshot(fleet, wanted, pods)


def claims(seen: SparesSnapshot) -> dict[str, str]:
    actions = plan(seen, NOW).plan.actions
    return {action.object.name: action.facts.template for action in actions if action.reason == "Claimed"}


def counts(seen: SparesSnapshot) -> Counter[str]:
    return Counter(owner for each in seen.nodes if (owner := owner_of(each)) is not None)


@given(worlds())
def test_every_node_gets_at_most_one_patch(seen: SparesSnapshot) -> None:
    written = Counter(action.object for action in plan(seen, NOW).plan.actions)
    assert all(count == 1 for count in written.values())


@given(worlds())
def test_only_spares_are_claimed_and_never_one_that_has_an_owner(seen: SparesSnapshot) -> None:
    by_name = {each.metadata.name: each for each in seen.nodes}
    for name in claims(seen):
        given_node = by_name[name]
        assert is_spare(given_node)
        assert owner_of(given_node) is None
        assert MIRRORED_NODE not in given_node.metadata.labels
        assert POOL_DRAINING not in given_node.metadata.annotations


@given(worlds())
def test_no_template_gets_more_than_it_asks_for(seen: SparesSnapshot) -> None:
    before, after = counts(seen), counts(apply(seen, plan(seen, NOW)))
    for each in seen.templates:
        assert after[each.name] <= max(before[each.name], each.spec.nodes)


@given(worlds())
def test_a_node_that_a_lower_template_gets_is_not_missed_by_a_higher_one_that_is_short(seen: SparesSnapshot) -> None:
    """The higher template could not claim it, and enough spares remain for what it lacks."""
    after = apply(seen, plan(seen, NOW))
    by_name = {each.name: Resolved(each) for each in seen.templates}
    left = [each for each in after.nodes if is_spare(each)]
    for name, taker in claims(seen).items():
        taken = next(each for each in seen.nodes if each.metadata.name == name)
        for higher in by_name.values():
            short = higher.desired - sum(map(higher.matches, _owned(after, higher.template)))
            is_above = higher.priority > by_name[taker].priority and _acts(higher.template)
            if not is_above or short <= 0 or not higher.can_keep(taken):
                continue
            assert Spare(taken, seen.pods).refusal_for(higher.eligibility) is not None
            assert sum(map(higher.can_keep, left)) >= short


def _owned(seen: SparesSnapshot, each: NodeTemplate) -> list[Node]:
    return [one for one in seen.nodes if owner_of(one) == each.name]


def _acts(each: NodeTemplate) -> bool:
    return not (each.is_dry_run or each.is_paused or each.is_deleting)


@given(worlds())
def test_an_applied_plan_leaves_no_actions(seen: SparesSnapshot) -> None:
    """Releases need time for their next step; they converge too."""
    after, now = converge(seen)
    assert not plan(after, now).plan.actions
    assert not plan(after, now + timedelta(days=1)).plan.actions


@given(worlds())
def test_a_plan_that_calls_itself_final_is_followed_by_none_and_refuses_the_same(seen: SparesSnapshot) -> None:
    planned = plan(seen, NOW)
    if planned.is_final:
        after = plan(apply(seen, planned), NOW)
        assert not after.plan.actions
        assert after.plan.blocked == planned.plan.blocked
        assert after.plan.wake_at == planned.plan.wake_at


@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_observed_objects_does_not_matter(seen: SparesSnapshot, random: Any) -> None:
    shuffled_nodes, shuffled_templates = list(seen.nodes), list(seen.templates)
    random.shuffle(shuffled_nodes)
    random.shuffle(shuffled_templates)
    pods = [each for one in (seen.pods or {}).values() for each in one]
    again = snapshot(shuffled_nodes, shuffled_templates, pods)
    assert plan(again, NOW) == plan(seen, NOW)


@given(worlds())
def test_dry_runs_and_paused_templates_change_none_of_their_nodes(seen: SparesSnapshot) -> None:
    still = {each.name for each in seen.templates if each.is_dry_run or each.is_paused}
    actions = plan(seen, NOW).plan.actions
    assert not [
        each for each in actions if getattr(each.facts, "template", None) in still and each.object.kind == "Node"
    ]


@given(worlds())
def test_taints_of_others_are_never_lost(seen: SparesSnapshot) -> None:
    after, _ = converge(seen)
    for before, now in zip(seen.nodes, after.nodes, strict=True):
        theirs = {each for each in before.spec.taints if each.key == "their"}
        assert theirs <= set(now.spec.taints)


@given(worlds())
def test_every_patch_with_taints_or_an_owner_is_bound_to_what_was_seen(seen: SparesSnapshot) -> None:
    planned = plan(seen, NOW)
    for action in planned.plan.actions:
        write = planned.write(action)
        if action.object.kind != "Node":
            continue
        labels = write.body.get("metadata", {}).get("labels", {})
        if "taints" in write.body.get("spec", {}) or names.TEMPLATE_LABEL in labels:
            assert write.resource_version == "1"


@given(st.lists(st.sampled_from(ZONES[1:]), max_size=14), st.integers(0, 12))
def test_zones_are_balanced_within_one_where_the_spares_allow(zones: list[str], wanted: int) -> None:
    fleet = [spare(f"n{number:02}", zone=zone) for number, zone in enumerate(zones)]
    after = apply(seen := snapshot(fleet, [template("web", wanted)]), plan(seen, NOW))
    used = Counter(each.metadata.labels[ZONE] for each in after.nodes if owner_of(each))
    left = {each.metadata.labels[ZONE] for each in after.nodes if not owner_of(each)}
    for zone in left:
        assert max(used.values(), default=0) - used[zone] <= 1


@given(nodes("a"), contents, st.booleans())
def test_a_claimed_node_comes_back_as_it_was(before: Node, wanted: dict[str, Any], is_changed: bool) -> None:
    """Holds also after template edits and drift repair in between."""
    first = snapshot([before], [template("web", template=wanted)])
    if claims(first) != {"a": "web"}:
        return
    kept, _ = converge(first)
    if is_changed:
        edited = template("web", template=described(labels={"tier": "new"}, taints=["d=9:NoSchedule"]))
        kept, _ = converge(SparesSnapshot(kept.nodes, [edited]))
    after, _ = converge(SparesSnapshot(kept.nodes, [template("web", 0, releasePolicy="Release", template=wanted)]))
    [back] = after.nodes
    resting = converge(snapshot([before]))[0].nodes[0]
    assert back.metadata.labels == resting.metadata.labels
    assert back.metadata.annotations == resting.metadata.annotations
    assert set(back.spec.taints) == set(resting.spec.taints)
    assert back.spec.unschedulable == resting.spec.unschedulable


@given(selectors, selectors, st.dictionaries(st.just("role"), st.sampled_from((*ROLES, "third"))))
def test_selectors_that_a_node_satisfies_both_overlap(a: Any, b: Any, labels: dict[str, str]) -> None:
    first, second = from_object(a), from_object(b)
    if first.matches(labels) and second.matches(labels):
        assert can_overlap(first, second)


@given(worlds(), st.integers(0, 3))
def test_a_kill_between_any_two_writes_is_recovered(seen: SparesSnapshot, survived: int) -> None:
    """Only the first writes of a plan succeed; the next process converges to the same state."""
    planned = plan(seen, NOW)
    arrived = planned.plan.actions[:survived]
    cut = msgspec.structs.replace(planned, plan=msgspec.structs.replace(planned.plan, actions=arrived))
    resumed, _ = converge(apply(seen, cut), NOW + SETTLE)
    whole, _ = converge(seen)
    assert counts(resumed) == counts(whole)
