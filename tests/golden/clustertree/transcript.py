"""Plays a scenario of one Cluster and writes a readable transcript, reconcile by reconcile.

A scenario is YAML: a `story`, the `models` of Cluster east, the `leaf` with its nodes, what its pods use and how it
answers, nodes of the `root`, the models of an `earlier` Cluster of the same leaf, and `steps`, each of which changes
something and lets time pass. After the start and after each step the plan is made and applied until nothing is left to
do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
from tests.builders.plans import render_decision

from nodeyard.capabilities.clustertree.leases.inputs import CREDENTIAL_GRACE, node_lease_inputs
from nodeyard.capabilities.clustertree.leases.liveness import LeafHealth
from nodeyard.capabilities.clustertree.planning.labels import FIXED
from nodeyard.capabilities.clustertree.planning.ownership import is_mirror_of
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.kube.conditions import UNKNOWN
from nodeyard.plan.model import Planned

from ...builders import tree_state as build

_PASSES = 20
_STATES = {
    "answers": lambda now: build.alive(now),
    "fails to answer": lambda now: build.failing(now),
    "does not answer": lambda now: build.lost(now),
    "rejects": lambda now: build.rejecting(now),
    "has rejected for long": lambda now: build.lost(now, is_rejected=True, rejected_since=now - CREDENTIAL_GRACE),
}


class Stage:
    """The world of one scenario."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.models: list[Any] = []
        self.options: dict[str, Any] = {}
        self.nodes: dict[str, dict[str, Any]] = {}
        self.used: dict[str, Any] = {}
        self.tree = build.TreeState(build.cluster(metadata={"finalizers": []}))
        self.change(scenario)

    def change(self, given: dict[str, Any]) -> None:
        self.tree = self.tree.later(given.get("seconds", 0))
        self._change_cluster(given)
        self._change_leaf(given.get("leaf") or {})
        if "earlier" in given:
            models = given["earlier"]
            earlier_clusters = () if models is None else (build.cluster("north", *map(_model, models)),)
            self.tree = self.tree.with_(earlier_clusters=earlier_clusters)
        for name, traits in (given.get("root") or {}).items():
            self._change_root(name, traits)
        if given.get("pods gone"):
            self.tree = self.tree.with_(pending_pods=())
        waiting = [build.bound(name, on, self.tree.now) for name, on in (given.get("pods") or {}).items()]
        self.tree = self.tree.with_(pending_pods=(*self.tree.pending_pods, *waiting))

    def _change_cluster(self, given: dict[str, Any]) -> None:
        metadata: dict[str, Any] = {"finalizers": list(self.tree.cluster.metadata.finalizers)}
        if self.tree.cluster.is_deleting or given.get("delete"):
            metadata["deletionTimestamp"] = build.NOW.isoformat()
        metadata["resourceVersion"] = self.tree.cluster.metadata.resource_version
        metadata["annotations"] = dict(self.tree.cluster.metadata.annotations)
        self.models = [_model(each) for each in given["models"]] if "models" in given else self.models
        self.options |= given.get("options") or {}
        own = build.cluster("east", *self.models, metadata=metadata, **self.options)
        self.tree = self.tree.with_(cluster=own)

    def _change_leaf(self, given: dict[str, Any]) -> None:
        for name, traits in (given.get("nodes") or {}).items():
            self.nodes[name] = {**self.nodes.get(name, {}), **(traits or {})}
        for name in given.get("gone", ()):
            del self.nodes[name]
        for name, usage in (given.get("used") or {}).items():
            self.used[name] = build.used(**usage)
        before = self.tree.leaf
        health = _health(given.get("it", ""), before.health, self.tree.now)
        is_seen = {"answers": True, "": before.is_connected}.get(given.get("it", ""), False)
        nodes = [build.leaf_node(name, **traits) for name, traits in self.nodes.items()]
        self.tree = self.tree.with_(
            leaf=build.leaf(*nodes, used=dict(self.used), health=health, is_connected=is_seen, uid="leaf")
        )

    def _change_root(self, name: str, traits: Any) -> None:
        if traits == "deleted by hand":
            self.tree = self.tree.without_root(name)
        elif traits in ("cordoned by hand", "uncordoned by hand"):
            node = self.tree.roots[name]
            spec = msgspec.structs.replace(node.spec, unschedulable=traits == "cordoned by hand")
            self.tree = self.tree.with_roots(msgspec.structs.replace(node, spec=spec))
        elif traits == "left by Kosmos":
            self.tree = self.tree.with_roots(build.left_by_kosmos(name))
        else:
            self.tree = self.tree.with_roots(build.root_node(name))


def _model(given: dict[str, Any]) -> Any:
    kind, rest = given["is"], {key: value for key, value in given.items() if key != "is"}
    if kind == "the whole":
        return build.whole_model(**rest)
    if kind == "a party":
        return build.selector_model(rest.pop("name"), rest.pop("selector", None), **rest)
    return build.node_model(kind, **rest)


def _health(word: str, before: LeafHealth | None, now: datetime) -> LeafHealth | None:
    """An unreachable leaf keeps the time of its last response."""
    if not word:
        return before
    found = _STATES[word](now)
    return found if before is None or found.is_rejected else replace(found, last_contact=before.last_contact or now)


def play(scenario: dict[str, Any]) -> str:
    stage = Stage(scenario)
    lines = [scenario["story"].strip(), "", *_rest(stage, "At first")]
    for step in scenario.get("steps", ()):
        stage.change(step)
        lines += ["", *_rest(stage, step["then"])]
        lines += [line for ref in step.get("why", ()) for line in _why(stage.tree, *ref.split("/"))]
    return "\n".join(lines) + "\n"


def _why(tree: build.TreeState, kind: str, name: str, namespace: str = "") -> Iterator[str]:
    decision = tree.why(kind, name, namespace)
    assert decision is not None
    yield ""
    yield from (f"  | {line}".rstrip() for line in render_decision(decision).splitlines())


def _rest(stage: Stage, title: str) -> Iterator[str]:
    """Reconcile until nothing is left to do; a wait is written once and then skipped, if it ends."""
    yield f"== {title}"
    start = stage.tree.now
    told: set[str] = set()
    for _ in range(_PASSES):
        planned = stage.tree.plan()
        for line in _tell(planned):
            if line not in told:
                yield f"  +{(stage.tree.now - start).total_seconds():g}s  {line}"
            told.add(line)
        stage.tree = stage.tree.after(planned)
        if not planned.plan.actions and planned.plan.wake_at is None:
            break
        stage.tree = stage.tree.with_(now=stage.tree.now if planned.plan.actions else planned.plan.wake_at)
    yield from _standing(stage.tree)


def _tell(planned: Planned) -> Iterator[str]:
    for action in planned.plan.actions:
        yield action.facts.text()
    for blocked in planned.plan.blocked:
        yield f"Refused: {blocked.facts.text()}"


def _standing(tree: build.TreeState) -> Iterator[str]:
    if not tree.cluster.metadata.finalizers:
        yield "  east is not held"
    leased = {each.name: each.is_alive for each in node_lease_inputs(tree.snapshot(), tree.now)}
    for name, node in sorted(tree.roots.items()):
        yield f"  {_looks(node) if is_mirror_of(node, 'east') else f'{name} is not ours'}"
        if name in leased and not leased[name]:
            yield "    its lease is left to run out"


def _looks(node: TreeNode) -> str:
    ready = node.condition("Ready")
    assert ready is not None
    state = f"Ready={ready.status} ({ready.reason})"
    offers = ", ".join(f"{key} {value}" for key, value in sorted(node.status.allocatable.items())) or "nothing"
    own = [f"{key}={value}" for key, value in sorted(node.metadata.labels.items()) if key not in FIXED]
    taints = [f"{each.key}={each.value}:{each.effect}" for each in node.spec.taints[1:]]
    cordon = ", cordoned" if node.spec.unschedulable else ""
    settings = f" with {', '.join([*own, *taints])}" if own or taints else ""
    why = f"\n    {ready.message}" if ready.status == UNKNOWN else ""
    return f"{node.name} {state}{cordon} offers {offers}{settings}{why}"
