"""After any changes of a leaf, incremental sums equal recomputed ones, and the formula holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from nodeyard.capabilities.clustertree import watched
from nodeyard.capabilities.clustertree.planning.resources import Free, differs, free
from nodeyard.capabilities.clustertree.snapshot import NOTHING, TreeNode, Usage
from nodeyard.capabilities.clustertree.types import Counting, ResourceOptions
from nodeyard.capabilities.clustertree.watched import LeafPod
from nodeyard.kube.quantity import NANO, canonical_to_milli, parse
from nodeyard.runtime.capability import Aggregate
from nodeyard.watch.indexes import Fold

from ..builders.leaf_resources import leaf_node, leaf_pod

NODES = ("n1", "n2", "n3")
AMOUNTS = {
    "cpu": ("0", "1m", "250m", "1", "1500m", "4"),
    "memory": ("0", "1", "1000", "64Mi", "1Gi", "1500M"),
    "example.com/gpu": ("0", "1", "3"),
    "hugepages-2Mi": ("2Mi", "8Mi"),
}


def lists(**more: tuple[str, ...]) -> st.SearchStrategy[dict[str, str]]:
    choices = {name: st.sampled_from(values) for name, values in {**AMOUNTS, **more}.items()}
    return st.fixed_dictionaries({}, optional=choices)


nodes = st.builds(
    leaf_node,
    st.sampled_from(NODES),
    lists(pods=("0", "2", "110")),
    ready=st.sampled_from(("True", "True", "True", "False", "Unknown", None)),
    cordoned=st.sampled_from((False, False, True)),
    taints=st.sampled_from(((), (), ("NoSchedule",), ("PreferNoSchedule",), ("NoExecute",))),
)
pods = st.builds(
    leaf_pod,
    st.sampled_from("abcdef"),
    st.sampled_from(("", *NODES, "gone")),
    lists(),
    phase=st.sampled_from(("Running", "Running", "Pending", "Succeeded", "Failed", "Unknown")),
    from_root=st.sampled_from((False, False, True)),
)
events = st.one_of(nodes, pods, st.sampled_from(NODES), st.sampled_from("abcdef"))
"""A created or changed object, or the name of a deleted one."""
options = st.builds(
    ResourceOptions,
    exclude_tainted=st.booleans(),
    count_pods=st.sampled_from(Counting),
    reserve_percent=st.sampled_from((0, 0, 1, 33, 100)),
    largest_free=st.booleans(),
)


@dataclass
class Leaf:
    """Objects of a leaf as in the cache, and the fold over its pods."""

    nodes: dict[str, TreeNode] = field(default_factory=dict)
    pods: dict[str, LeafPod] = field(default_factory=dict)
    fold: Fold = field(
        default_factory=lambda: Fold(
            Aggregate("used", "Pod", lambda: NOTHING, watched.usage_node, watched.add_usage, watched.remove_usage)
        )
    )

    def see(self, event: TreeNode | LeafPod | str) -> None:
        if isinstance(event, TreeNode):
            self.nodes[event.name] = event
        elif isinstance(event, LeafPod):
            self._replace(event.metadata.name, event)
        elif event in NODES:
            self.nodes.pop(event, None)
        else:
            self._replace(event, None)

    def _replace(self, name: str, new: LeafPod | None) -> None:
        old = self.pods.pop(name, None)
        if new is not None:
            self.pods[name] = new
        if old is not None or new is not None:
            self.fold.commit(self.fold.stage(("ns", name), old, new))

    def free(self, options: ResourceOptions) -> Free:
        return free([self.nodes[name] for name in sorted(self.nodes)], self.fold.value, options)


def exact(resources: Mapping[str, str] | None, name: str) -> Fraction:
    return Fraction(parse((resources or {}).get(name, "0")).nano, NANO)


def asks(pod: LeafPod, name: str) -> Fraction:
    """Return the requests of a pod with one container and nothing else."""
    [container] = pod.spec.containers or ()
    assert container.resources is not None
    return Fraction(1) if name == "pods" else exact(container.resources.requests, name)


def counts(node: TreeNode, options: ResourceOptions) -> bool:
    is_ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
    is_tainted = any(each.effect in ("NoSchedule", "NoExecute") for each in node.spec.taints)
    return is_ready and not node.spec.unschedulable and not (is_tainted and options.exclude_tainted)


def is_bound(pod: LeafPod, node: TreeNode) -> bool:
    return pod.spec.node_name == node.name and pod.status.phase not in ("Succeeded", "Failed")


def is_counted(pod: LeafPod, options: ResourceOptions) -> bool:
    if pod.metadata.labels.get("kosmos-io/pod") == "true":
        return False
    return options.count_pods is Counting.SCHEDULED or pod.status.phase == "Running"


def rounded(name: str, amount: Fraction) -> Fraction:
    return Fraction(floor(amount * 1000), 1000) if name == "cpu" else Fraction(floor(amount))


def from_scratch(leaf: Leaf, options: ResourceOptions) -> dict[str, dict[str, Fraction]]:
    """Compute the documented formula over all objects."""
    counted = [node for node in leaf.nodes.values() if counts(node, options)]
    found: dict[str, dict[str, Fraction]] = {"capacity": {}, "allocatable": {}, "largest": {}}
    for name in {name for node in leaf.nodes.values() for name in node.status.allocatable}:
        base = sum((exact(node.status.allocatable, name) for node in counted), Fraction())
        taken = Fraction()
        largest = Fraction()
        for node in counted:
            on_it = [pod for pod in leaf.pods.values() if is_bound(pod, node)]
            of_leaf = [pod for pod in on_it if is_counted(pod, options)]
            of_root = [pod for pod in on_it if pod.metadata.labels.get("kosmos-io/pod") == "true"]
            taken += sum((asks(pod, name) for pod in of_leaf), Fraction())
            filled = sum((asks(pod, name) for pod in of_leaf + of_root), Fraction())
            largest = max(largest, exact(node.status.allocatable, name) - filled)
        kept = base * options.reserve_percent / 100
        found["capacity"][name] = rounded(name, max(Fraction(), base - taken))
        found["allocatable"][name] = rounded(name, max(Fraction(), base - taken - kept))
        if options.largest_free:
            found["largest"][name] = rounded(name, largest)
    return found


def in_numbers(shown: Mapping[str, str]) -> dict[str, Fraction]:
    return {name: Fraction(parse(text).nano, NANO) for name, text in shown.items()}


@given(st.lists(events, max_size=25), options)
def test_running_sums_equal_the_formula(happened: list[TreeNode | LeafPod | str], options: ResourceOptions) -> None:
    leaf = Leaf()
    for event in happened:
        leaf.see(event)
    found, wanted = leaf.free(options), from_scratch(leaf, options)
    assert in_numbers(found.capacity) == wanted["capacity"]
    assert in_numbers(found.allocatable) == wanted["allocatable"]
    assert in_numbers(found.largest) == wanted["largest"]


@given(st.lists(events, max_size=25), options)
def test_shown_resources_are_never_negative_and_stored_unchanged(
    happened: list[TreeNode | LeafPod | str], options: ResourceOptions
) -> None:
    leaf = Leaf()
    for event in happened:
        leaf.see(event)
        found = leaf.free(options)
        for shown in (found.capacity, found.allocatable, found.largest):
            assert all(parse(text).nano >= 0 for text in shown.values())
            assert not differs({name: canonical_to_milli(text) for name, text in shown.items()}, shown)
            assert all(canonical_to_milli(text) == text for text in shown.values())
        assert found.allocatable.keys() == found.capacity.keys()
        assert all(parse(found.allocatable[name]) <= parse(text) for name, text in found.capacity.items())


@given(st.lists(pods, max_size=12), st.randoms(use_true_random=False))
def test_adding_and_removing_undo_each_other_in_any_order(some: list[LeafPod], random: Random) -> None:
    distinct = list({pod.metadata.name: pod for pod in some}.values())
    total = NOTHING
    for pod in distinct:
        before = total
        total = watched.add_usage(before, pod)
        assert watched.remove_usage(total, pod) == before
    random.shuffle(distinct)
    for pod in distinct:
        total = watched.remove_usage(total, pod)
    assert total == Usage()


@given(st.lists(events, max_size=25))
def test_the_option_to_count_running_pods_alone_never_shows_less_room(
    happened: list[TreeNode | LeafPod | str],
) -> None:
    leaf = Leaf()
    for event in happened:
        leaf.see(event)
    scheduled = leaf.free(ResourceOptions()).capacity
    running = leaf.free(ResourceOptions(count_pods=Counting.RUNNING)).capacity
    assert all(parse(running[name]) >= parse(text) for name, text in scheduled.items())
