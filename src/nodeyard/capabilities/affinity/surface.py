"""Affinity on the dashboard: the classes of a node, tenants with their classes, pods and refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collect.applications import application_kinds, applications
from nodeyard.capabilities.affinity.collect.classes import find_violators
from nodeyard.capabilities.affinity.planning.containment import compiled, is_in_class
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.types import AffinityClass, ConditionType, Tenant
from nodeyard.kube import timestamps
from nodeyard.kube.conditions import FALSE, find
from nodeyard.kube.json import Object
from nodeyard.kube.objects import PartialObject
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime import surface
from nodeyard.runtime.capability import View
from nodeyard.runtime.surface import (
    Attention,
    PlacementClass,
    Places,
    Refusal,
    Severity,
    Surface,
    Tile,
    rungs,
)

LISTED: Final = 50
"""Bound of the violators and of the refusals of one tenant."""
_NODE: Final = watched.NODE_METADATA.kind
_POD: Final = watched.PLACED_PODS.kind


# tiles


def tile(view: View, name: str) -> Tile | None:
    """Return the classes of a node, joined if there are several."""
    node: PartialObject | None = view.get(_NODE, name)
    if node is None:
        return None
    classes: Sequence[AffinityClass] = view.all(names.CLASS_KIND)
    found = [each.name for each in classes if is_in_class(compiled(each), node.metadata)]
    return Tile(placement_class=", ".join(found)) if found else None


def _nodes_of_class(view: View, old: AffinityClass | None, new: AffinityClass | None) -> Iterable[str]:
    """Return all nodes if what a class requires has changed, which is rare."""
    if old is not None and new is not None and old.spec == new.spec:
        return ()
    return [node.metadata.name for node in view.all(_NODE)]


# attention


def attention(view: View, _now: datetime) -> Iterator[Attention]:
    classes: Sequence[AffinityClass] = view.all(names.CLASS_KIND)
    for each in classes:
        matching = find(each.status.conditions, ConditionType.NODES_MATCH)
        if matching is not None and matching.status == FALSE and each.status.users:
            yield Attention(
                kind="Shortage",
                severity=Severity.CRITICAL,
                object=each.ref,
                reason=matching.reason,
                message=matching.message,
                since=matching.last_transition_time,
                link={"view": "yard", "group": "class", "class": each.name},
            )
    tenants: Sequence[Tenant] = view.all(names.TENANT_KIND)
    for tenant in tenants:
        valid = find(tenant.status.conditions, ConditionType.CLASSES_VALID)
        if valid is not None and valid.status == FALSE:
            yield Attention(
                kind="Refused",
                severity=Severity.WARNING,
                object=tenant.ref,
                reason=valid.reason,
                message=valid.message,
                since=valid.last_transition_time,
            )


# places


def places(view: View, now: datetime) -> Places:
    tenants: Sequence[Tenant] = view.all(names.TENANT_KIND)
    if not tenants:
        return Places()
    classes: Mapping[str, AffinityClass] = {each.name: each for each in view.all(names.CLASS_KIND)}
    pods = {name: _pods_by_namespace(view, name, now) for name in classes}
    outside = {name: _violators_by_namespace(view, each, now) for name, each in classes.items()}
    refused = view.memo("refusals", (), now, lambda: _refusals(view))
    return Places(
        tenants=tuple(
            surface.Tenant(
                name=tenant.own_namespace,
                classes=tuple(
                    PlacementClass(
                        name=name,
                        nodes=classes[name].status.nodes,
                        pods=pods[name][tenant.own_namespace],
                        violators=tuple(outside[name].get(tenant.own_namespace, ())[:LISTED]),
                        is_default=name == tenant.status.default_affinity_class,
                    )
                    for name in _allowed(tenant, classes)
                ),
                refusals=tuple((*_own_refusals(tenant), *refused.get(tenant.own_namespace, ()))[:LISTED]),
            )
            for tenant in tenants
        )
    )


def _allowed(tenant: Tenant, classes: Mapping[str, AffinityClass]) -> list[str]:
    """Return the existing classes that the tenant may use."""
    allowed = tenant.status.allowed_affinity_classes
    return [name for name in classes if allowed is None or name in allowed]


def _pods_by_namespace(view: View, name: str, now: datetime) -> Counter[str]:
    """Count the pods of a class by namespace; every few seconds, since they may be many."""
    if not view.is_synced(_POD):
        return Counter()

    def count() -> Counter[str]:
        found: Counter[str] = Counter()
        for shape in view.aggregate(names.SHAPES, name):
            found.update(pod.metadata.namespace for pod in view.indexed(_POD, names.BY_SHAPE, f"{name} {shape}"))
        return found

    return view.memo(("pods by namespace", name), (), now, count)


def _violators_by_namespace(view: View, of: AffinityClass, now: datetime) -> Mapping[str, list[ObjectRef]]:
    def gather() -> Mapping[str, list[ObjectRef]]:
        found: dict[str, list[ObjectRef]] = {}
        for pod in find_violators(view, of)[0]:
            namespace, _, name = pod.partition("/")
            ref = ObjectRef(api_version="v1", kind="Pod", namespace=namespace, name=name)
            found.setdefault(namespace, []).append(ref)
        return found

    return view.memo(("violators by namespace", of.name), of.metadata.generation, now, gather)


def _own_refusals(tenant: Tenant) -> Iterator[Refusal]:
    valid = find(tenant.status.conditions, ConditionType.CLASSES_VALID)
    if valid is not None and valid.status == FALSE and valid.last_transition_time is not None:
        yield Refusal(t=valid.last_transition_time, object=tenant.ref, message=valid.message)


def _refusals(view: View) -> Mapping[str, list[Refusal]]:
    """Return the applications whose class is refused, by namespace, the latest first."""
    found: dict[str, list[Refusal]] = {}
    for kind in application_kinds(view):
        for application in applications(view, kind):
            if (refusal := _refusal(kind, application)) is not None:
                found.setdefault(refusal.object.namespace, []).append(refusal)
    return {name: sorted(each, key=lambda refusal: refusal.t, reverse=True) for name, each in found.items()}


def _refusal(kind: str, application: Object) -> Refusal | None:
    metadata = application["metadata"]
    conditions: Iterable[Any] = (application.get("status") or {}).get("conditions") or ()
    for each in conditions:
        since = timestamps.parse_rfc3339_or_none(each.get("lastTransitionTime"))
        is_refused = (each.get("type"), each.get("status")) == (ConditionType.RESOLVED.value, FALSE)
        if is_refused and since is not None:
            ref = ObjectRef(
                api_version=names.APPS_API_VERSION,
                kind=kind,
                namespace=metadata.get("namespace", ""),
                name=metadata["name"],
                uid=metadata.get("uid", ""),
            )
            return Refusal(t=since, object=ref, message=str(each.get("message", "")))
    return None


LADDERS: Final = {
    names.CLASS_KIND: rungs(
        (Reason.AFFINITY_CLASS_IN_USE, "It is being deleted and still used"),
        (Reason.INVALID_SELECTOR, "Its selector is invalid"),
        (Reason.NODES_MATCH, "Nodes match its selector"),
        (Reason.NO_NODE_MATCHES, "No node matches its selector"),
    ),
}

SURFACE: Final = Surface(
    tile=tile,
    tile_nodes={names.CLASS_KIND: _nodes_of_class},
    attention=attention,
    places=places,
    ladders=LADDERS,
)
