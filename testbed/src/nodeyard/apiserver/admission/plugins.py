"""The built-in plugins: NamespaceLifecycle, TaintNodesByCondition, Priority and DefaultTolerationSeconds."""

from __future__ import annotations

from nodeyard.apiserver import errors
from nodeyard.apiserver.admission.attributes import Attributes, Mutating
from nodeyard.apiserver.admission.namespaces import NAMESPACES, Namespaces
from nodeyard.apiserver.resources import GroupResource
from nodeyard.kube.json import Object
from nodeyard.kube.names import TAINT_NOT_READY, TAINT_UNREACHABLE
from nodeyard.kube.taints import NO_EXECUTE, NO_SCHEDULE, is_same, taints_of

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
_NODES = GroupResource("", "nodes")
_NOT_READY: Object = {"key": TAINT_NOT_READY, "effect": NO_SCHEDULE}
_PODS = GroupResource("", "pods")
_TOLERATION_SECONDS = 300
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class NamespaceLifecycle(Mutating):
    """Refuses to create objects in a namespace that is missing or terminating, and to delete some namespaces.

    It runs first: no webhook is called for what it refuses.
    """

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces

    async def mutate(self, attributes: Attributes) -> None:
        if attributes.resource.key == NAMESPACES:
            if attributes.operation == "DELETE" and attributes.name in IMMORTAL:
                raise attributes.forbidden("this namespace may not be deleted")
            return
        name = attributes.namespace
        if not name or attributes.operation in ("DELETE", "CONNECT"):
            return
        namespace = self._namespaces.get(name)
        if namespace is None:
            raise errors.not_found("", "namespaces", name)
        if namespace.is_terminating and attributes.operation == "CREATE":
            why = f"unable to create new content in namespace {name} because it is being terminated"
            error = attributes.forbidden(why)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
            error.details = {**(error.details or {}), "causes": [cause]}
            raise error


class TaintNodesByCondition(Mutating):
    """Taints a new node as not ready, so that no pod is scheduled to it before it is."""

    async def mutate(self, attributes: Attributes) -> None:
        node = attributes.object
        if attributes.operation != "CREATE" or attributes.resource.key != _NODES or node is None:
            return
        taints = taints_of(node)
        if attributes.subresource or any(is_same(taint, _NOT_READY) for taint in taints):
            return
        spec = {**(node.get("spec") or {}), "taints": [*taints, _NOT_READY]}
        attributes.object = {**node, "spec": spec}


class DefaultTolerationSeconds(Mutating):
    """Lets a pod stay for five minutes on a node that is not ready or unreachable."""

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
    """Sets `priority` from `priorityClassName`. Only the two system classes are known."""

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
    """Return the pod of a create or update, else None."""
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
        raise attributes.forbidden(f"no PriorityClass with name {name} was found")
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
            raise attributes.forbidden(why)
