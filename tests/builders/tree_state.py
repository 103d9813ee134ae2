"""In-memory state of a root and one leaf for tests of clustertree: a Cluster, leaf nodes and root nodes.

    tree = TreeState(cluster("east", selector_model("gpu", pool="gpu")), leaf(leaf_node("n1", pool="gpu")))
    planned = tree.plan()
    tree = tree.after(planned)

`TreeState.seen` collects as the controller does, `TreeState.after` does what a server does with the writes of a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.leases.liveness import LeafHealth, State
from nodeyard.capabilities.clustertree.plan import plan
from nodeyard.capabilities.clustertree.planning.models import wanted_names
from nodeyard.capabilities.clustertree.snapshot import BoundPod, Kubeconfig, Leaf, TreeNode, TreeSnapshot, Usage
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.json import Object
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE
from nodeyard.kube.objects import Lease, LeaseSpec
from nodeyard.kube.patch import merge_patch
from nodeyard.kube.quantity import parse
from nodeyard.plan.model import Action, Decision, ObjectRef, Planned, Verb

NOW = datetime(2030, 1, 1, tzinfo=UTC)
VERSION = "v1.36.4"


def taint(text: str) -> Object:
    """Parse a taint `key=value:Effect` or `key:Effect`."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


# leaf models


def whole_model(**given: Any) -> Object:
    return _model({}, "", **given)


def node_model(node: str, **given: Any) -> Object:
    return _model({"nodeName": node}, "", **given)


def selector_model(name: str, selector: Object | None = None, **given: Any) -> Object:
    """Select by one label, `pool="gpu"`, unless a full selector is given; other arguments are fields of the model."""
    fields = {key: given.pop(key) for key in ("labels", "taints") if key in given}
    chosen = {"matchLabels": given} if selector is None else selector
    return _model({"labelSelector": chosen}, name, **fields)


def _model(
    selector: Object, name: str, *, labels: Mapping[str, str] | None = None, taints: Sequence[str] = ()
) -> Object:
    return {
        "leafNodeName": name,
        "nodeSelector": selector,
        "labels": dict(labels or {}),
        "taints": [taint(each) for each in taints],
    }


def cluster(name: str = "east", *models: Object, metadata: Object | None = None, **tree: Any) -> Cluster:
    """Build a stored Cluster that already has the finalizer. Tree options have their JSON names."""
    own: Object = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1}
    own["finalizers"] = [names.FINALIZER]
    own |= metadata or {}
    spec = {"kubeconfig": "Zm9v", "clusterTreeOptions": {"leafModels": list(models), **tree}}
    return msgspec.convert({"metadata": own, "spec": spec}, Cluster)


# the leaf


def leaf_node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    ready: str = "True",
    is_cordoned: bool = False,
    taints: Sequence[str] = (),
    conditions: Sequence[Object] = (),
    addresses: Sequence[Object] = (),
    more: Mapping[str, str] | None = None,
    **labels: str,
) -> TreeNode:
    """Build a leaf node; `more` are further resources, `labels` are in addition to the hostname."""
    wire: Object = {
        "metadata": {"name": name, "uid": f"leaf-{name}", "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {"unschedulable": is_cordoned, "taints": [taint(each) for each in taints]},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": "110", **(more or {})},
            "conditions": [condition("Ready", ready, "KubeletReady"), *conditions],
            "addresses": list(addresses) or [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.35.0", "architecture": "arm64", "operatingSystem": "linux"},
        },
    }
    return msgspec.convert(wire, TreeNode)


def condition(type: str, status: str, reason: str = "Because", at: datetime = NOW - timedelta(days=1)) -> Object:
    return {"type": type, "status": status, "reason": reason, "message": "", "lastTransitionTime": at.isoformat()}


def used(pods: int = 0, **requests: str) -> Usage:
    amounts = {name: parse(text).nano for name, text in requests.items()}
    return Usage(scheduled=amounts, scheduled_pods=pods, running=amounts, running_pods=pods)


def lease(renewed: datetime, seconds: int = 40) -> Lease:
    return Lease(spec=LeaseSpec(renew_time=renewed, lease_duration_seconds=seconds))


def alive(now: datetime = NOW, **given: Any) -> LeafHealth:
    return LeafHealth(State.ALIVE, now, last_contact=now, **given)


def lost(since: datetime = NOW, **given: Any) -> LeafHealth:
    return LeafHealth(State.UNREACHABLE, since, last_contact=since - timedelta(seconds=30), message="no route", **given)


def rejecting(since: datetime = NOW) -> LeafHealth:
    known = {"last_contact": since, "message": "401 Unauthorized", "is_rejected": True, "rejected_since": since}
    return LeafHealth(State.REJECTING, since, **known)


def failing(since: datetime = NOW) -> LeafHealth:
    return LeafHealth(State.FAILING, since, last_contact=since, message="timed out")


def leaf(*nodes: TreeNode, health: LeafHealth | None = None, **given: Any) -> Leaf:
    """Build a leaf that has been listed and responds."""
    known = {"is_synced": True, "is_connected": True, "version": VERSION, "health": health or alive(), **given}
    return Leaf(nodes={each.name: each for each in sorted(nodes, key=lambda each: each.name)}, **known)


def unreached_leaf(error: str = "connection refused", **given: Any) -> Leaf:
    """Build a leaf that has never been reached."""
    return Leaf(error=error, **given)


# the root


def root_node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    **spec: Any,
) -> TreeNode:
    """Build a node of the root that mirrors nothing."""
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    metadata |= {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
    body = {"metadata": metadata, "spec": {"taints": [taint(each) for each in taints], **spec}}
    return msgspec.convert(body, TreeNode)


def left_by_kosmos(name: str, cluster: str = "east", **given: Any) -> TreeNode:
    """Build a mirrored node as Kosmos creates it."""
    return root_node(
        name,
        labels={MIRRORED_NODE: "true", "kubernetes.io/role": "agent", **given.pop("labels", {})},
        annotations={MIRRORED_CLUSTER: cluster, **given.pop("annotations", {})},
        taints=["kosmos.io/node=true:NoSchedule", *given.pop("taints", ())],
        **given,
    )


def bound(name: str, node: str, since: datetime = NOW, namespace: str = "shop") -> BoundPod:
    return BoundPod(namespace=namespace, name=name, uid=f"uid-{name}", node=node, since=since)


@dataclass(frozen=True)
class TreeState:
    cluster: Cluster
    leaf: Leaf = field(default_factory=leaf)
    roots: Mapping[str, TreeNode] = field(default_factory=dict)
    """All nodes of the root."""
    pending_pods: Sequence[BoundPod] = ()
    kubeconfig: Kubeconfig = field(default_factory=lambda: Kubeconfig(is_given=True))
    now: datetime = NOW
    earlier_clusters: tuple[Cluster, ...] = ()
    """Other Clusters of the same leaf that have precedence."""

    def snapshot(self) -> TreeSnapshot:
        name = self.cluster.name
        mirrors = {
            each.name: each for each in _sorted(self.roots) if each.metadata.annotations.get(MIRRORED_CLUSTER) == name
        }
        wanted = wanted_names(self.cluster, mirrors)
        conflicting_nodes = {each: self.roots[each] for each in wanted if each in self.roots and each not in mirrors}
        return TreeSnapshot(
            cluster=self.cluster,
            kubeconfig=self.kubeconfig,
            leaf=self.leaf,
            mirrors=mirrors,
            conflicting_nodes=conflicting_nodes,
            pending_pods=self.pending_pods,
            earlier_clusters=self.earlier_clusters,
        )

    def plan(self, *explain: ObjectRef) -> Planned:
        return plan(self.snapshot(), self.now, explain)

    def why(self, kind: str, name: str, namespace: str = "") -> Decision | None:
        api_version = names.API_VERSION if kind == names.KIND else "v1"
        ref = ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace)
        return next(iter(self.plan(ref).plan.decisions), None)

    def with_(self, **changes: Any) -> TreeState:
        return replace(self, **changes)

    def with_roots(self, *nodes: TreeNode) -> TreeState:
        return replace(self, roots={**self.roots, **{each.name: each for each in nodes}})

    def without_root(self, name: str) -> TreeState:
        return replace(self, roots={key: each for key, each in self.roots.items() if key != name})

    def later(self, seconds: float) -> TreeState:
        return replace(self, now=self.now + timedelta(seconds=seconds))

    def after(self, planned: Planned) -> TreeState:
        """Return the state after all actions succeeded. A Cluster without finalizers is still included."""
        roots, own = dict(self.roots), self.cluster
        for action in planned.plan.actions:
            if action.object.kind == names.KIND:
                own = _written(own, action, planned)
            elif action.object.kind == "Node" and action.verb is Verb.DELETE:
                del roots[action.object.name]
            elif action.object.kind == "Node":
                roots[action.object.name] = _node_after(roots.get(action.object.name), action, planned)
        return replace(self, roots=roots, cluster=own)

    def settled(self, passes: int = 6) -> TreeState:
        """Return the state after reconciling until nothing is left to do."""
        tree = self
        for _ in range(passes):
            planned = tree.plan()
            if not planned.plan.actions:
                return tree
            tree = tree.after(planned)
        raise AssertionError(f"the plan does not come to rest: {[each.id for each in planned.plan.actions]}")


def settled_state(*models: Object, nodes: Iterable[TreeNode], **given: Any) -> TreeState:
    """Build a Cluster with all its nodes, created two seconds ago."""
    tree = TreeState(cluster("east", *models, **given), leaf(*nodes))
    return tree.settled().later(2)


def _sorted(roots: Mapping[str, TreeNode]) -> list[TreeNode]:
    return sorted(roots.values(), key=lambda each: each.name)


def _node_after(before: TreeNode | None, action: Action, planned: Planned) -> TreeNode:
    body = planned.write(action).body
    if before is None:
        assert action.verb is Verb.CREATE, f"{action.id} is not there"
        metadata = {**body["metadata"], "uid": f"uid-{action.object.name}", "resourceVersion": "1"}
        return msgspec.convert({**body, "metadata": metadata}, TreeNode)
    assert action.verb is Verb.PATCH, f"{action.id} is there"
    part = "status" if planned.write(action).subresource else "spec"
    served = {name: value for name, value in body.items() if name in ("metadata", part)}
    return _patched(before, served, action, planned)


def _written(before: Cluster, action: Action, planned: Planned) -> Cluster:
    return _patched(before, planned.write(action).body, action, planned)


def _patched(before: Any, body: Object, action: Action, planned: Planned) -> Any:
    """Apply a patch like the API server; a stale resourceVersion fails the test."""
    expected = planned.write(action).resource_version
    version = before.metadata.resource_version
    is_mirror_of = any(planned.writes[each].resource_version == expected for each in _earlier(action, planned))
    assert is_mirror_of or expected in ("", version), f"{action.id} is bound to version {expected} and meets {version}"
    assert action.object.uid in ("", before.metadata.uid)
    wire = merge_patch(msgspec.to_builtins(before), body)
    metadata = {**wire["metadata"], "resourceVersion": str(int(version) + 1)}
    return msgspec.convert({**wire, "metadata": metadata}, type(before))


def _earlier(action: Action, planned: Planned) -> list[str]:
    """Return the preceding actions on the object, whose resulting resourceVersion the action expects."""
    return [each.id for each in planned.plan.actions if each.id in action.after and each.object == action.object]


def mirror_of(name: str, planned: Planned) -> Object:
    """Return the body of a create request."""
    return next(planned.write(each).body for each in planned.plan.actions if each.object.name == name)


def reasons(planned: Planned) -> list[tuple[str, str]]:
    return [(each.object.name, each.reason) for each in planned.plan.actions]


def refused(planned: Planned) -> list[tuple[str, str]]:
    return [(each.object.name, each.reason) for each in planned.plan.blocked]
