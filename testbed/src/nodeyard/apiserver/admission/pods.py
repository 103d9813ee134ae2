"""What every pod gets: a priority, and five minutes' patience with a node that is not ready or unreachable."""

from __future__ import annotations

from nodeyard.apiserver.admission import refusals
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.plugins import Mutating
from nodeyard.apiserver.resources import GroupResource
from nodeyard.kube.json import Object
from nodeyard.kube.names import TAINT_NOT_READY, TAINT_UNREACHABLE
from nodeyard.kube.taints import NO_EXECUTE

_PODS = GroupResource("", "pods")
_TOLERATION_SECONDS = 300
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class DefaultTolerationSeconds(Mutating):
    async def mutate(self, attributes: Attributes) -> None:
        pod = _pod(attributes)
        if pod is None:
            return
        tolerations: list[Object] = pod["spec"].get("tolerations") or []
        added = [
            {"key": key, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": _TOLERATION_SECONDS}
            for key in (TAINT_NOT_READY, TAINT_UNREACHABLE)
            if not any(_is_about(toleration, key) for toleration in tolerations)
        ]
        if added:
            attributes.object = {**pod, "spec": {**pod["spec"], "tolerations": [*tolerations, *added]}}


class Priority(Mutating):
    """The number behind `priorityClassName`. Only the two classes every cluster has are known."""

    async def mutate(self, attributes: Attributes) -> None:
        pod = _pod(attributes)
        if pod is None:
            return
        if attributes.operation == "UPDATE":
            old = (attributes.old or {}).get("spec") or {}
            kept = {key: old[key] for key in ("priority", "preemptionPolicy") if key in old and key not in pod["spec"]}
            if kept:
                attributes.object = {**pod, "spec": {**pod["spec"], **kept}}
            return
        computed = {"priority": _priority(attributes, pod["spec"]), "preemptionPolicy": "PreemptLowerPriority"}
        _check_given(attributes, pod["spec"], computed)
        attributes.object = {**pod, "spec": {**pod["spec"], **computed}}


def _pod(attributes: Attributes) -> Object | None:
    """The pod that a create or update brings, as far as the plugins above care about it."""
    if attributes.resource.key != _PODS or attributes.subresource or attributes.operation not in ("CREATE", "UPDATE"):
        return None
    pod = attributes.object
    return pod if pod is not None and isinstance(pod.get("spec"), dict) else None


def _is_about(toleration: Object, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", NO_EXECUTE)


def _priority(attributes: Attributes, spec: Object) -> int:
    name = spec.get("priorityClassName") or ""
    if not name:
        return 0
    if name not in _SYSTEM_PRIORITIES:
        raise refusals.forbidden(attributes, f"no PriorityClass with name {name} was found")
    return _SYSTEM_PRIORITIES[name]


def _check_given(attributes: Attributes, spec: Object, computed: Object) -> None:
    words = {"priority": "integer value of priority", "preemptionPolicy": "string value of PreemptionPolicy"}
    for field, value in computed.items():
        given = spec.get(field)
        if given is not None and given != value:
            why = (
                f"the {words[field]} ({given}) must not be provided in pod spec; priority admission controller "
                f"computed {value} from the given PriorityClass name"
            )
            raise refusals.forbidden(attributes, why)
