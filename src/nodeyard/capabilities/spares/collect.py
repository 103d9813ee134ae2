"""Takes the snapshot from the informer caches.

Pods are included only where emptiness matters: on spares if a template has `requireEmpty`, and on nodes of templates
with `releasePolicy: Release`. `needs_pods` decides whether pods are watched at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, is_spare, template_of
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.kube.drain import is_workload
from nodeyard.kube.objects import Node, Pod
from nodeyard.runtime.capability import View


def collect(view: View, _key: str, _now: datetime) -> SparesSnapshot:
    nodes: Sequence[Node] = view.all("Node")
    templates: Sequence[NodeTemplate] = view.all(names.KIND)
    malformed = {name: each for (_namespace, name), each in view.malformed(names.KIND).items()}
    if malformed:
        # The cache may still have the last version that could be decoded.
        templates = [template for template in templates if template.name not in malformed]
    return SparesSnapshot(nodes, templates, _pods(view, nodes, templates), malformed)


def needs_pods(templates: Iterable[NodeTemplate]) -> bool:
    return any(template.spec.eligibility.require_empty or template.releases for template in templates)


def _pods(view: View, nodes: Iterable[Node], templates: Sequence[NodeTemplate]) -> Mapping[str, Sequence[Pod]] | None:
    if not needs_pods(templates):
        return {}
    if not view.is_synced("Pod"):
        return None
    needs_empty = any(template.spec.eligibility.require_empty for template in templates)
    releasing = {template.name for template in templates if template.releases}
    found: dict[str, Sequence[Pod]] = {}
    for node in nodes:
        owner = template_of(node)
        if owner in releasing or (owner is None and needs_empty and is_spare(node)):
            name = node.metadata.name
            if pods := [pod for pod in view.indexed("Pod", names.PODS_BY_NODE, name) if is_workload(pod)]:
                found[name] = pods
    return found
