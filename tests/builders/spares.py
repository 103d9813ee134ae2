"""Builders of nodes, pods and templates for the tests of spares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.planning.node_patch import Record, digest_of, encode
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.client.decoder import Malformed
from nodeyard.kube.drain import is_workload
from nodeyard.kube.json import Object
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import (
    Condition,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    Taint,
)
from nodeyard.kube.patch import merge_patch
from nodeyard.plan.model import Action, Planned, Verb

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SPARE_TAINT = Taint(key=names.SPARE_TAINT, value="true", effect="NoSchedule")


def taint(text: str) -> Taint:
    """Parse a taint `key=value:Effect`."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return Taint(key=key, value=value, effect=effect)


def node(
    name: str,
    *,
    zone: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    is_ready: bool = True,
    is_cordoned: bool = False,
    is_deleting: bool = False,
) -> Node:
    ready = Condition(type="Ready", status="True" if is_ready else "False")
    return Node(
        metadata=ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            resource_version="1",
            labels={**({ZONE: zone} if zone else {}), **(labels or {})},
            annotations=dict(annotations or {}),
            deletion_timestamp=NOW if is_deleting else None,
        ),
        spec=NodeSpec(taints=tuple(map(taint, taints)), unschedulable=is_cordoned),
        status=NodeStatus(conditions=(ready,)),
    )


def spare(name: str, **given: Any) -> Node:
    """Build a spare with the taint that its kubelet registered, and with the spare label."""
    labels = {names.SPARE_LABEL: "true", **given.pop("labels", {})}
    annotations = {names.LABELLED: "true", **given.pop("annotations", {})}
    taints = [f"{names.SPARE_TAINT}=true:NoSchedule", *given.pop("taints", ())]
    return node(name, labels=labels, annotations=annotations, taints=taints, **given)


def born(name: str, template: str, **given: Any) -> Node:
    """Build a node that nyallocator or its kubelet gave to the template: it has no record."""
    own = {names.TEMPLATE_LABEL: template, names.role_label(template): "true"}
    return node(name, labels={**own, **given.pop("labels", {})}, **given)


def owned(name: str, template: str, **given: Any) -> Node:
    """Build a node like `born` after its adoption: the record contains nothing else."""
    annotations = {names.RECORD: encode(Record(template=template, adopted=True)), **given.pop("annotations", {})}
    labels = {names.RECORD_DIGEST: digest_of(annotations[names.RECORD]), **given.pop("labels", {})}
    return born(name, template, labels=labels, annotations=annotations, **given)


def template(name: str, nodes: int = 1, *, selector: Object | None = None, **spec: Any) -> NodeTemplate:
    """Build a NodeTemplate. Fields of the spec have their JSON names; `metadata` is merged."""
    metadata = {"name": name, "uid": f"uid-{name}", "generation": 1, "resourceVersion": "1"}
    metadata["finalizers"] = [names.FINALIZER]
    metadata.update(spec.pop("metadata", {}))
    status = spec.pop("status", {})
    body = {"nodes": nodes, "selector": selector or {}, **spec}
    return msgspec.convert({"metadata": metadata, "spec": body, "status": status}, NodeTemplate)


def unread(name: str, error: str = "Expected `int`, got `str`", **known: Any) -> Malformed:
    """Build a template that does not decode."""
    return Malformed("MODIFIED", "", name, f"uid-{name}", "7", error, **known)


def described(
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
) -> Object:
    """Build `spec.template` of a NodeTemplate."""
    wire = [{"key": each.key, "value": each.value, "effect": each.effect} for each in map(taint, taints)]
    return {
        "metadata": {"labels": dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {"taints": wire},
    }


def pod(name: str, on: str, *, owner: str = "ReplicaSet", phase: str = "Running", is_deleting: bool = False) -> Pod:
    reference = OwnerReference(kind=owner, name="owner", uid="uid-owner", controller=True)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"uid-{name}",
            owner_references=(reference,),
            deletion_timestamp=NOW if is_deleting else None,
        ),
        spec=PodSpec(node_name=on),
        status=PodStatus(phase=phase),
    )


def snapshot(
    nodes: Iterable[Node] = (), templates: Iterable[NodeTemplate] = (), pods: Iterable[Pod] | None = (), **given: Any
) -> SparesSnapshot:
    by_node: dict[str, list[Pod]] | None = None
    if pods is not None:
        by_node = {}
        for each in pods:
            if is_workload(each):
                by_node.setdefault(each.spec.node_name, []).append(each)
    return SparesSnapshot(
        nodes=sorted(nodes, key=lambda each: each.metadata.name),
        templates=sorted(templates, key=lambda each: each.name),
        pods=by_node,
        **given,
    )


def apply(seen: SparesSnapshot, planned: Planned) -> SparesSnapshot:
    """Return the snapshot after all actions, applied as merge patches like on a server."""
    nodes = {each.metadata.name: each for each in seen.nodes}
    templates = {each.name: each for each in seen.templates}
    pods = {name: list(each) for name, each in (seen.pods or {}).items()}
    for action in planned.plan.actions:
        if action.verb is Verb.EVICT:
            (node,) = action.disrupts
            pods[node] = [each for each in pods[node] if each.metadata.name != action.object.name]
        elif action.object.kind == "Node":
            nodes[action.object.name] = _patched(nodes[action.object.name], action, planned, Node)
        else:
            after = _patched(templates[action.object.name], action, planned, NodeTemplate)
            templates[after.name] = after
            if after.is_deleting and not after.metadata.finalizers:
                del templates[after.name]
    known = pods if seen.pods is not None else None
    return SparesSnapshot(list(nodes.values()), list(templates.values()), known, seen.malformed)


def _patched(before: Any, action: Action, planned: Planned, kind: type[Any]) -> Any:
    wire = merge_patch(msgspec.to_builtins(before), planned.write(action).body)
    version = str(int(before.metadata.resource_version) + 1)
    metadata = {**wire["metadata"], "resourceVersion": version}
    spec = wire["spec"]
    if kind is Node and spec.get("unschedulable") is None:
        spec = {**spec, "unschedulable": False}
    return msgspec.convert({**wire, "metadata": metadata, "spec": spec}, kind)


def converge(seen: SparesSnapshot, now: datetime = NOW, passes: int = 20) -> tuple[SparesSnapshot, datetime]:
    """Plan and apply until nothing is left to do. Time advances to `wake_at`."""
    for _ in range(passes):
        planned = plan(seen, now)
        if not planned.plan.actions and planned.plan.wake_at is None:
            return seen, now
        seen = apply(seen, planned)
        now = planned.plan.wake_at or now + timedelta(seconds=1)
    raise AssertionError("the plan does not come to rest")


def all_done(planned: Planned) -> Outcome:
    return outcome(planned)


def outcome(planned: Planned, **results: Result) -> Outcome:
    """Build an outcome in which all actions succeeded, except those on the given objects."""
    return Outcome(
        results=tuple(
            ActionResult(
                action=action,
                result=results.get(action.object.name, Result.DONE),
                message="the server said no" if action.object.name in results else "",
            )
            for action in planned.plan.actions
        )
    )


def owner_of(each: Node) -> str | None:
    return each.metadata.labels.get(names.TEMPLATE_LABEL)


def find(seen: SparesSnapshot, name: str) -> Node:
    return next(each for each in seen.nodes if each.metadata.name == name)
