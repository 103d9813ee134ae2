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

from nodeyard.capabilities.clustertree.leases.inputs import CREDENTIAL_GRACE, node_lease_inputs
from nodeyard.capabilities.clustertree.leases.liveness import LeafHealth
from nodeyard.capabilities.clustertree.planning.labels import FIXED
from nodeyard.capabilities.clustertree.planning.ownership import is_mirror_of
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.kube.conditions import UNKNOWN
from nodeyard.plan.explain import render_decision
from nodeyard.plan.model import Planned

from ...builders import trees as build

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
        self.yard = build.Yard(build.cluster(metadata={"finalizers": []}))
        self.change(scenario)

    def change(self, given: dict[str, Any]) -> None:
        self.yard = self.yard.later(given.get("seconds", 0))
        self._change_cluster(given)
        self._change_leaf(given.get("leaf") or {})
        if "earlier" in given:
            models = given["earlier"]
            earlier_clusters = () if models is None else (build.cluster("north", *map(_model, models)),)
            self.yard = self.yard.with_(earlier_clusters=earlier_clusters)
        for name, traits in (given.get("root") or {}).items():
            self._change_root(name, traits)
        if given.get("pods gone"):
            self.yard = self.yard.with_(pending_pods=())
        waiting = [build.bound(name, on, self.yard.now) for name, on in (given.get("pods") or {}).items()]
        self.yard = self.yard.with_(pending_pods=(*self.yard.pending_pods, *waiting))

    def _change_cluster(self, given: dict[str, Any]) -> None:
        metadata: dict[str, Any] = {"finalizers": list(self.yard.cluster.metadata.finalizers)}
        if self.yard.cluster.is_deleting or given.get("delete"):
            metadata["deletionTimestamp"] = build.NOW.isoformat()
        metadata["resourceVersion"] = self.yard.cluster.metadata.resource_version
        metadata["annotations"] = dict(self.yard.cluster.metadata.annotations)
        self.models = [_model(each) for each in given["models"]] if "models" in given else self.models
        self.options |= given.get("options") or {}
        own = build.cluster("east", *self.models, metadata=metadata, **self.options)
        self.yard = self.yard.with_(cluster=own)

    def _change_leaf(self, given: dict[str, Any]) -> None:
        for name, traits in (given.get("nodes") or {}).items():
            self.nodes[name] = {**self.nodes.get(name, {}), **(traits or {})}
        for name in given.get("gone", ()):
            del self.nodes[name]
        for name, usage in (given.get("used") or {}).items():
            self.used[name] = build.used(**usage)
        before = self.yard.leaf
        health = _health(given.get("it", ""), before.health, self.yard.now)
        is_seen = {"answers": True, "": before.is_connected}.get(given.get("it", ""), False)
        nodes = [build.leaf_node(name, **traits) for name, traits in self.nodes.items()]
        self.yard = self.yard.with_(
            leaf=build.leaf(*nodes, used=dict(self.used), health=health, is_connected=is_seen, uid="leaf")
        )

    def _change_root(self, name: str, traits: Any) -> None:
        if traits == "deleted by hand":
            self.yard = self.yard.without_root(name)
        elif traits in ("cordoned by hand", "uncordoned by hand"):
            node = self.yard.roots[name]
            spec = msgspec.structs.replace(node.spec, unschedulable=traits == "cordoned by hand")
            self.yard = self.yard.with_roots(msgspec.structs.replace(node, spec=spec))
        elif traits == "left by Kosmos":
            self.yard = self.yard.with_roots(build.left_by_kosmos(name))
        else:
            self.yard = self.yard.with_roots(build.root_node(name))


def _model(given: dict[str, Any]) -> Any:
    kind, rest = given["is"], {key: value for key, value in given.items() if key != "is"}
    if kind == "the whole":
        return build.whole(**rest)
    if kind == "a party":
        return build.party(rest.pop("name"), rest.pop("selector", None), **rest)
    return build.one(kind, **rest)


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
        lines += [line for ref in step.get("why", ()) for line in _why(stage.yard, *ref.split("/"))]
    return "\n".join(lines) + "\n"


def _why(yard: build.Yard, kind: str, name: str, namespace: str = "") -> Iterator[str]:
    decision = yard.why(kind, name, namespace)
    assert decision is not None
    yield ""
    yield from (f"  | {line}".rstrip() for line in render_decision(decision).splitlines())


def _rest(stage: Stage, title: str) -> Iterator[str]:
    """Reconcile until nothing is left to do; a wait is written once and then skipped, if it ends."""
    yield f"== {title}"
    start = stage.yard.now
    told: set[str] = set()
    for _ in range(_PASSES):
        planned = stage.yard.plan()
        for line in _tell(planned):
            if line not in told:
                yield f"  +{(stage.yard.now - start).total_seconds():g}s  {line}"
            told.add(line)
        stage.yard = stage.yard.after(planned)
        if not planned.plan.actions and planned.plan.wake_at is None:
            break
        stage.yard = stage.yard.with_(now=stage.yard.now if planned.plan.actions else planned.plan.wake_at)
    yield from _standing(stage.yard)


def _tell(planned: Planned) -> Iterator[str]:
    for action in planned.plan.actions:
        yield action.facts.text()
    for blocked in planned.plan.blocked:
        yield f"Refused: {blocked.facts.text()}"


def _standing(yard: build.Yard) -> Iterator[str]:
    if not yard.cluster.metadata.finalizers:
        yield "  east is not held"
    leased = {each.name: each.is_alive for each in node_lease_inputs(yard.seen(), yard.now)}
    for name, node in sorted(yard.roots.items()):
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
