"""Plan one AffinityClass: a finalizer keeps it while it is in use.

Also check a class on its own: are its selectors valid, can kubelets set its labels on their own nodes, and which pods
with the label of the class could run outside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

import msgspec

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.classes import ClassInUse
from nodeyard.capabilities.affinity.messages.objects import FinalizerAdded, FinalizerRemoved, ServedElsewhere
from nodeyard.capabilities.affinity.planning.containment import Inside, NodeOf, compiled, contains_pod, node_of_daemon
from nodeyard.capabilities.affinity.snapshot import ClassSnapshot
from nodeyard.capabilities.affinity.types import AffinityClass, AffinityClassSpec, ClassUser
from nodeyard.kube.fields import FieldError, invalid
from nodeyard.kube.names import label_value_faults, qualified_name_faults
from nodeyard.kube.node_affinity import Affinity, NodeSelector
from nodeyard.kube.node_affinity_errors import comparison_errors, node_selector_errors
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan import finalizers
from nodeyard.plan.builder import PlanBuilder

NAMED_USERS: Final = 100
"""Number of users that status lists."""
NAMED_PODS: Final = 100
"""Up to this many pods outside the class are listed by name; more are only counted."""
MAX_SHAPES: Final = 20_000
"""Number of shapes of pods whose result a class remembers."""
_REQUIRED: Final = "spec.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def plan_class(builder: PlanBuilder, snapshot: ClassSnapshot) -> None:
    affinity_class = snapshot.affinity_class
    ref, metadata = affinity_class.ref, affinity_class.metadata
    if snapshot.is_served_elsewhere:
        builder.block(ref, ServedElsewhere())
    if not snapshot.users:
        removed = FinalizerRemoved(object=ref, finalizer=names.CLASS_FINALIZER)
        finalizers.remove(builder, ref, metadata, names.CLASS_FINALIZER, removed)
        return
    if affinity_class.is_deleting:
        builder.block(ref, class_in_use(affinity_class.name, snapshot.users))
        return
    added = FinalizerAdded(object=ref, finalizer=names.CLASS_FINALIZER)
    finalizers.add(builder, ref, metadata, names.CLASS_FINALIZER, added)


def class_in_use(name: str, users: Sequence[ClassUser]) -> ClassInUse:
    shown = [f"{user.kind} {user.namespace}/{user.name}" for user in users[:NAMED_USERS]]
    return ClassInUse(affinity_class=name, users=shown, count=len(users))


# validation


def selector_errors(spec: AffinityClassSpec) -> list[str]:
    """Return the errors that the API server would report for a pod with the same selectors."""
    errors = list(_label_errors(spec))
    if spec.node_affinity is not None and spec.node_affinity.required is not None:
        try:
            terms = msgspec.convert(spec.node_affinity.required, NodeSelector)
        except msgspec.ValidationError as error:
            return [*map(str, errors), f"{_REQUIRED}: {error}"]
        errors += [*node_selector_errors(terms, _REQUIRED), *comparison_errors(terms, _REQUIRED)]
    return list(map(str, errors))


def _label_errors(spec: AffinityClassSpec) -> Iterator[FieldError]:
    for key, value in sorted(spec.node_selector.items()):
        for fault in qualified_name_faults(key):
            yield invalid("spec.nodeSelector", key, fault)
        for fault in label_value_faults(value):
            yield invalid(f"spec.nodeSelector[{key}]", value, fault)


# labels that kubelets can set (NodeRestriction)
# https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction

_GUARDED: Final = "node-restriction.kubernetes.io"
_RESERVED: Final = ("kubernetes.io", "k8s.io")
_KUBELET_PREFIXES: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KUBELET_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "node.kubernetes.io/instance-type",
    }
)
"""Labels in reserved domains that a kubelet may set; it may not set others there."""


def self_assignable(spec: AffinityClassSpec) -> list[str]:
    """Return the labels of a class that NodeRestriction lets a kubelet set on its own node."""
    return sorted(filter(is_self_assignable, _keys(spec)))


def is_self_assignable(key: str) -> bool:
    prefix = key.rpartition("/")[0]
    if _is_below(prefix, (_GUARDED,)):
        return False
    return key in _KUBELET_LABELS or _is_below(prefix, _KUBELET_PREFIXES) or not _is_below(prefix, _RESERVED)


def _is_below(prefix: str, domains: Iterable[str]) -> bool:
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


def _keys(spec: AffinityClassSpec) -> set[str]:
    required = None if spec.node_affinity is None else spec.node_affinity.required
    try:
        terms = msgspec.convert(required or {}, NodeSelector).node_selector_terms
    except msgspec.ValidationError:
        terms = ()
    return {*spec.node_selector, *(each.key for term in terms for each in term.match_expressions if each.key)}


# violators


class PlacedSpec(Protocol):
    @property
    def node_selector(self) -> dict[str, str]: ...
    @property
    def affinity(self) -> Affinity | None: ...


class PlacedPod(Protocol):
    """The fields of a running pod that decide its placement."""

    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def spec(self) -> PlacedSpec: ...


def violators(
    affinity_class: AffinityClass, pods: Iterable[PlacedPod], node_of: NodeOf = lambda _name: None
) -> list[str]:
    """Return the pods that could run outside the class, as `namespace/name`, without those being deleted."""
    return sorted(
        f"{pod.metadata.namespace}/{pod.metadata.name}"
        for pod in pods
        if pod.metadata.deletion_timestamp is None and not is_inside(affinity_class, pod, node_of)
    )


def is_inside(affinity_class: AffinityClass, pod: PlacedPod, node_of: NodeOf = lambda _name: None) -> bool:
    """Return whether every node that the pod may run on is in the class."""
    required = required_nodes(pod)
    name = node_of_daemon(pod.metadata, required)
    node = node_of(name) if name else None
    return isinstance(contains_pod(compiled(affinity_class), pod.spec.node_selector, required, node), Inside)


def is_shape_inside(affinity_class: AffinityClass, shape: str, pod: PlacedPod) -> bool:
    """Return whether pods of this shape are inside. A class checks each shape once, not with every event of its pods.

    The terms of a DaemonSet's pod name its own node: its shape is checked by the nodeSelector alone.
    """
    made = compiled(affinity_class)
    found = made.shapes.get(shape)
    if found is None:
        if len(made.shapes) >= MAX_SHAPES:
            made.shapes.clear()
        required = None if is_of_daemon(pod) else required_nodes(pod)
        found = made.shapes[shape] = isinstance(contains_pod(made, pod.spec.node_selector, required, None), Inside)
    return found


def is_of_daemon(pod: PlacedPod) -> bool:
    return bool(node_of_daemon(pod.metadata, required_nodes(pod)))


def required_nodes(pod: PlacedPod) -> NodeSelector | None:
    return None if pod.spec.affinity is None else pod.spec.affinity.required_nodes
