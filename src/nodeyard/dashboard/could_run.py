"""Could a pod run? The requirements of the scheduler that exclude nodes, checked node by node.

A pod from a manifest is created as a dry run first, with the viewer's credentials: defaults, webhooks and policies
apply, and may refuse it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.errors import AdmissionDenied, Forbidden, Invalid
from nodeyard.client.resources import PODS
from nodeyard.dashboard.wire import CouldRun, NodeFit, Refused
from nodeyard.kube.json import Object
from nodeyard.kube.manifests import ManifestError, load_all
from nodeyard.kube.node_affinity import Affinity, NodeMatcher, node_matcher
from nodeyard.kube.objects import Node
from nodeyard.kube.pod_requests import RequestingPod, RequestingSpec, of_pod
from nodeyard.kube.quantity import QuantityError
from nodeyard.kube.resource_list import PODS as PODS_RESOURCE
from nodeyard.kube.resource_list import Amounts, add, parse_amounts
from nodeyard.kube.taints import render, untolerated
from nodeyard.plan.layout import counted

LISTED: Final = 200
MOST_PODS: Final = 50_000
"""With more pods on the cluster, free resources are not computed."""
_READY, _CORDON, _SELECTION, _TAINTS = "Ready", "Schedulable", "NodeSelection", "Taints"
_STATIC: Final = (_READY, _CORDON, _SELECTION, _TAINTS)


class _Spec(RequestingSpec, frozen=True):
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[dict[str, Any]] | None = None


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Pod(RequestingPod, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()


_PODS: Final = PODS.decoded_as(_Pod)


def parse_pod(text: str, namespace: str = "default") -> Object:
    """Return the Pod of a manifest. Raises Refused if it is not exactly one Pod."""
    try:
        objects = list(load_all(text.encode()))
    except ManifestError as error:
        raise Refused(400, f"The manifest cannot be read: {error}.") from None
    if len(objects) != 1 or not isinstance(objects[0], dict) or objects[0].get("kind") != "Pod":
        raise Refused(400, "The manifest is not one Pod.", "Paste the YAML of a single Pod.")
    pod = objects[0]
    metadata = pod.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise Refused(400, "The Pod has no metadata.name.")
    return {**pod, "metadata": {"namespace": namespace, **metadata}}


async def could_run_manifest(client: Client, nodes: Sequence[Node], pod: Object) -> CouldRun:
    """Try out a pod that does not exist."""
    try:
        answer = await client.create(PODS, pod, dry_run=True)
    except (AdmissionDenied, Forbidden, Invalid) as error:
        return CouldRun(verdict="Refused", sentence=f"The cluster refuses the pod: {error.message}")
    return await _could_run(client, nodes, msgspec.convert(answer, _Pod))


async def could_run_pod(client: Client, nodes: Sequence[Node], namespace: str, name: str) -> CouldRun:
    """Check a pod that exists."""
    return await _could_run(client, nodes, await client.get(_PODS, name, namespace))


async def _could_run(client: Client, nodes: Sequence[Node], pod: _Pod) -> CouldRun:
    try:
        wanted = of_pod(pod)
    except QuantityError as error:
        return CouldRun(verdict="Refused", sentence=f"The pod's requests cannot be read: {error}")
    wanted[PODS_RESOURCE] = parse_amounts({PODS_RESOURCE: "1"})[PODS_RESOURCE]
    matches = node_matcher(pod.spec.node_selector or {}, None if pod.spec.affinity is None else
                           pod.spec.affinity.required_nodes)  # fmt: skip
    tolerations = pod.spec.tolerations or []
    fits = {node.metadata.name: _static_fit(node, matches, tolerations) for node in nodes}
    open_nodes = [node for node in nodes if fits[node.metadata.name].failed is None]
    used = await _used(client, {node.metadata.name for node in open_nodes}, pod) if open_nodes else {}
    if used is not None:
        for node in open_nodes:
            fits[node.metadata.name] = _resource_fit(node, wanted, used.get(node.metadata.name, {}))
    return _summarize(pod, fits, wanted, are_resources_known=used is not None)


def _static_fit(node: Node, matches: NodeMatcher, tolerations: list[dict[str, Any]]) -> NodeFit:
    name = node.metadata.name
    failed = next(_failures(node, matches, tolerations), None)
    if failed is None:
        return NodeFit(name=name, is_taken=True)
    return NodeFit(name=name, failed=failed[0], message=failed[1])


def _failures(node: Node, matches: NodeMatcher, tolerations: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    if not any(each.type == "Ready" and each.status == "True" for each in node.status.conditions):
        yield _READY, "The node is not Ready."
    if not matches(node.metadata.labels, node.metadata.name):
        yield _SELECTION, "The node does not match the pod's nodeSelector or required node affinity."
    taints: list[Object] = [msgspec.to_builtins(taint) for taint in node.spec.taints]
    if (taint := next(untolerated(taints, tolerations), None)) is not None:
        yield _TAINTS, f"The pod does not tolerate the taint {render(taint)}."
    if node.spec.unschedulable:
        cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        if next(untolerated([cordon], tolerations), None) is not None:
            yield _CORDON, "The node is cordoned."


async def _used(client: Client, names: set[str], pod: _Pod) -> dict[str, Amounts] | None:
    """Return the requests of the pods on these nodes; None if there are too many pods to read."""
    used: dict[str, Amounts] = {}
    seen = 0
    fields = "status.phase!=Succeeded,status.phase!=Failed"
    async for page in client.pages(_PODS, fields=fields):
        seen += len(page.items)
        if seen > MOST_PODS:
            return None
        for each in page.items:
            if each.spec.node_name in names and each.metadata != pod.metadata:
                total = used.setdefault(each.spec.node_name, {})
                add(total, of_pod(each))
                add(total, parse_amounts({PODS_RESOURCE: "1"}))
    return used


def _resource_fit(node: Node, wanted: Mapping[str, int], used: Mapping[str, int]) -> NodeFit:
    name = node.metadata.name
    allocatable = parse_amounts(node.status.allocatable or node.status.capacity)
    for resource, amount in wanted.items():
        free = allocatable.get(resource, 0) - used.get(resource, 0)
        if amount > free:
            return NodeFit(name=name, failed=resource, message=f"The node has too little {resource} left.")
    return NodeFit(name=name, is_taken=True)


def _summarize(
    pod: _Pod, fits: Mapping[str, NodeFit], wanted: Mapping[str, int], *, are_resources_known: bool
) -> CouldRun:
    ordered = sorted(fits.values(), key=lambda fit: (not fit.is_taken, fit.failed or "", fit.name))
    by_requirement = Counter(fit.failed for fit in ordered if fit.failed)
    fitting = len(fits) - by_requirement.total()
    note = "" if are_resources_known else " Free resources were not checked: the cluster has too many pods."
    if pod.spec.node_name:
        sentence = f"The pod runs on {pod.spec.node_name}; it would fit on {counted(fitting, 'node')}."
    elif fitting:
        sentence = f"The pod could run on {fitting} of {counted(len(fits), 'node')}."
    else:
        worst = ", ".join(f"{number} fail {name}" for name, number in by_requirement.most_common(3))
        sentence = f"No node of {len(fits)} can run the pod{f': {worst}' if worst else ''}."
    return CouldRun(
        verdict="Yes" if fitting or pod.spec.node_name else "No",
        sentence=sentence + note,
        requirements=(*_STATIC, *wanted),
        nodes=tuple(ordered[:LISTED]),
        total=len(ordered),
        by_requirement=dict(by_requirement),
    )
