"""Cluster API's defaulting webhook for MachineDeployments, as an admission plugin of the embedded server.

    Server(plugins=[MachineDeploymentDefaults()])

Absent replicas default to 1 on every write, so a client that stops setting the field scales a live pool. With the two
annotations of the autoscaler they default to the old number, clamped to the annotated range.
"""

from __future__ import annotations

from typing import Final

from nodeyard.apiserver.admission.attributes import Attributes, Mutating
from nodeyard.apiserver.errors import bad_request
from nodeyard.apiserver.resources import GroupResource
from nodeyard.kube.json import Json, Object
from nodeyard.sim.machines import names

_DEPLOYMENTS: Final = GroupResource(names.GROUP, "machinedeployments")
_ROLLING: Final = "RollingUpdate"


class MachineDeploymentDefaults(Mutating):
    async def mutate(self, attributes: Attributes) -> None:
        obj = attributes.object
        if obj is None or attributes.subresource or attributes.resource.key != _DEPLOYMENTS:
            return
        if isinstance(obj.get("spec"), dict) and isinstance(obj["spec"].get("clusterName"), str):
            attributes.object = defaulted(obj, attributes.old)


def defaulted(deployment: Object, old: Object | None) -> Object:
    """Return the MachineDeployment with defaults; `old` is its state before the write, None on create."""
    spec, metadata = deployment["spec"], deployment["metadata"]
    cluster = {names.CLUSTER_NAME: spec["clusterName"]}
    named = {} if _has_selector(spec) else {names.DEPLOYMENT_NAME: metadata["name"]}
    selector = spec.get("selector") or {}
    template = spec.get("template") or {}
    inner = template.get("metadata") or {}
    return {
        **deployment,
        "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **cluster}},
        "spec": {
            **spec,
            "replicas": _replicas(deployment, old),
            "rollout": _rollout(spec.get("rollout") or {}),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **named, **cluster}},
            "template": {
                **template,
                "metadata": {
                    **inner,
                    "labels": {**(inner.get("labels") or {}), **named, **cluster},
                },
                **({"spec": _versioned(template["spec"])} if isinstance(template.get("spec"), dict) else {}),
            },
        },
    }


def _has_selector(spec: Object) -> bool:
    selector = spec.get("selector") or {}
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


def _replicas(deployment: Object, old: Object | None) -> Json:
    given = deployment["spec"].get("replicas")
    if given is not None:
        return given
    annotations = deployment["metadata"].get("annotations") or {}
    if not {names.AUTOSCALER_MIN, names.AUTOSCALER_MAX} <= annotations.keys():
        return 1
    low, high = (_size(annotations, key) for key in (names.AUTOSCALER_MIN, names.AUTOSCALER_MAX))
    before = (old or {}).get("spec", {}).get("replicas")
    return low if before is None else max(low, min(before, high))


def _size(annotations: Object, key: str) -> int:
    try:
        return int(annotations[key])
    except ValueError:
        raise bad_request(f'the annotation "{key}" must be a number, not "{annotations[key]}"') from None


def _rollout(rollout: Object) -> Object:
    strategy = {"type": _ROLLING, **(rollout.get("strategy") or {})}
    if strategy["type"] == _ROLLING:
        steps = {"maxSurge": 1, "maxUnavailable": 0, **(strategy.get("rollingUpdate") or {})}
        strategy = {**strategy, "rollingUpdate": steps}
    return {**rollout, "strategy": strategy}


def _versioned(spec: Object) -> Object:
    version = spec.get("version")
    if not isinstance(version, str) or not version or version.startswith("v"):
        return spec
    return {**spec, "version": f"v{version}"}
