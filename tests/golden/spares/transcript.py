"""Runs a scenario and writes a transcript, reconcile by reconcile.

A scenario is YAML: a `story`, the `nodes`, `pods` and `templates` it begins with, and `steps`, each of which changes
something and lets time pass. After the start and after each step, plans are made and applied until nothing is left to
do; every action and refusal is a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.report import report
from nodeyard.capabilities.spares.report.events import events
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.capabilities.spares.types import NodeTemplate, NodeTemplateStatus
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import Node
from nodeyard.plan.model import Planned

from ...builders import spares as build

_PASSES = 20


class Stage:
    """Simulated cluster of one scenario."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.nodes: dict[str, Node] = {}
        self.templates: dict[str, NodeTemplate] = {}
        self.pods: dict[str, Any] = {}
        self.now = build.NOW
        self.change(scenario)

    def change(self, given: dict[str, Any]) -> None:
        for name, traits in (given.get("nodes") or {}).items():
            self.nodes[name] = _node(name, traits or {})
        for name, labels in (given.get("label") or {}).items():
            self.nodes[name] = _labelled(self.nodes[name], labels)
        for name, on in (given.get("pods") or {}).items():
            self.pods[name] = build.pod(name, on)
        for name in given.get("remove pods", ()):
            del self.pods[name]
        for name, spec in (given.get("templates") or {}).items():
            before = self.templates.get(name)
            self.templates[name] = _template(name, spec, before)
        self.now += timedelta(seconds=given.get("seconds", 0))

    def seen(self) -> SparesSnapshot:
        return build.snapshot(self.nodes.values(), self.templates.values(), self.pods.values())

    def take(self, after: SparesSnapshot) -> None:
        self.nodes = {each.metadata.name: each for each in after.nodes}
        self.templates = {each.name: each for each in after.templates}
        left = {each.metadata.name for pods in (after.pods or {}).values() for each in pods}
        self.pods = {name: each for name, each in self.pods.items() if name in left}


def _node(name: str, traits: dict[str, Any]) -> Node:
    given = dict(traits)
    kind = given.pop("is", "spare")
    make = {"spare": build.spare, "plain": build.node, "fresh": _fresh}.get(kind)
    if make is None:
        return build.owned(name, kind.removeprefix("of "), **given)
    return make(name, **given)


def _labelled(node: Node, labels: dict[str, str]) -> Node:
    merged = {**node.metadata.labels, **labels}
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=merged))


def _fresh(name: str, **given: Any) -> Node:
    """Return a node as the kubelet registers it: with the taint, without the label."""
    return build.node(name, taints=[f"{names.SPARE_TAINT}=true:NoSchedule"], **given)


def _template(name: str, spec: dict[str, Any], before: NodeTemplate | None) -> NodeTemplate:
    generation = 1 if before is None else before.metadata.generation + 1
    metadata = {"generation": generation, "finalizers": [] if before is None else list(before.metadata.finalizers)}
    metadata.update(spec.get("metadata", {}))
    made = build.template(
        name, **{**{key: value for key, value in spec.items() if key != "metadata"}, "metadata": metadata}
    )
    return made if before is None else msgspec.structs.replace(made, status=before.status)


def play(scenario: dict[str, Any]) -> str:
    stage = Stage(scenario)
    lines = [scenario["story"].strip(), "", *_rest(stage, "At first")]
    for step in scenario.get("steps", ()):
        stage.change(step)
        lines += ["", *_rest(stage, step["then"])]
    return "\n".join(lines) + "\n"


def _rest(stage: Stage, title: str) -> Iterator[str]:
    """Reconcile until nothing is left to do. A wait is printed once; then time advances to `wake_at`."""
    yield f"== {title}"
    start = stage.now
    told: set[str] = set()
    for _ in range(_PASSES):
        seen = stage.seen()
        planned = plan(seen, stage.now)
        for line in _tell(seen, planned):
            if line not in told:
                yield f"  +{int((stage.now - start).total_seconds())}s  {line}"
            told.add(line)
        stage.take(_with_status(seen, planned, stage.now))
        if not planned.plan.actions and planned.plan.wake_at is None:
            break
        stage.now = planned.plan.wake_at or stage.now
    yield from _standing(stage)


def _with_status(seen: SparesSnapshot, planned: Planned, now: datetime) -> SparesSnapshot:
    after = build.apply(seen, planned)
    statuses = report(seen, planned.plan, build.all_done(planned), now).statuses
    written = {each.object.name: each.status for each in statuses}
    templates = [
        msgspec.structs.replace(each, status=msgspec.convert(written[each.name], NodeTemplateStatus))
        if each.name in written
        else each
        for each in after.templates
    ]
    return SparesSnapshot(after.nodes, templates, after.pods, after.malformed)


def _tell(seen: SparesSnapshot, planned: Planned) -> Iterator[str]:
    told = [f"{each.object.name}: {each.message}" for each in events(seen, planned.plan, build.all_done(planned))]
    for action in planned.plan.actions:
        if action.reason in ("SpareLabelled", "SpareUnlabelled"):
            told.append(f"{action.object.name}: {action.facts.text()}")
    yield from told


def _standing(stage: Stage) -> Iterator[str]:
    for each in stage.templates.values():
        sufficient = next((one for one in each.status.conditions if one.type == "Sufficient"), None)
        verdict = f", {sufficient.reason}" if sufficient is not None else ""
        yield f"  {each.name} has {each.status.current_nodes} of {each.spec.nodes}{verdict}"
    for each in stage.nodes.values():
        yield f"    {_looks(each)}"


def _looks(node: Node) -> str:
    labels = node.metadata.labels
    owner = labels.get(names.TEMPLATE_LABEL)
    kind = f"of {owner}" if owner is not None else "spare" if labels.get(names.SPARE_LABEL) else "nobody's"
    zone = f" in {labels[ZONE]}" if ZONE in labels else ""
    own = sorted(f"{key}={value}" for key, value in labels.items() if "/" not in key)
    taints = [f"{each.key}={each.value}:{each.effect}" for each in node.spec.taints if each.key != names.SPARE_TAINT]
    cordon = ", cordoned" if node.spec.unschedulable else ""
    settings = f" with {', '.join([*own, *taints])}" if own or taints else ""
    return f"{node.metadata.name}{zone} is {kind}{cordon}{settings}"
