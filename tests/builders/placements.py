"""Builders of pods, owners and classes, a view of them, and the admission requests that place pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from tests.builders.applications import NAMESPACE, ZONE

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, Tenant
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Namespace, Node, PartialObject
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.webhooks import AdmissionRequest, LookedUp

FLUX = names.FLUX_API_VERSION
_TYPES: Mapping[str, type[Any]] = {
    names.CLASS_KIND: AffinityClass,
    names.TENANT_KIND: Tenant,
    names.DEFINITION_KIND: ApplicationDefinition,
    "Namespace": Namespace,
    "Node": Node,
}
_WHOLE = (names.RELEASE_KIND, "APIService")


def body(
    api_version: str,
    kind: str,
    name: str,
    *,
    owners: Sequence[Object] = (),
    labels: Mapping[str, str] | None = None,
    namespace: str = NAMESPACE,
    uid: str = "",
    **rest: Any,
) -> Object:
    """Build an object as the server returns it; `owners` are objects that own it."""
    metadata: Object = {"name": name, "uid": uid or f"uid-{kind}-{name}".lower()}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    if owners:
        metadata["ownerReferences"] = [reference(each) for each in owners]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def reference(owner: Object, **changes: Any) -> Object:
    metadata = owner["metadata"]
    named = {"name": metadata["name"], "uid": metadata["uid"], "controller": True}
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **named, **changes}


def release(
    name: str = "postgres-main-db",
    *,
    of: tuple[str, str] | None = ("Postgres", "main-db"),
    affinity_class: str | None = "dc1",
    previous: str | None = None,
    labels: Mapping[str, str] | None = None,
    **given: Any,
) -> Object:
    """Build a HelmRelease; `of` is kind and name of its application, if it has one."""
    marks = dict(labels or {})
    if of is not None:
        marks |= {names.APPLICATION_GROUP: names.APPS_GROUP, names.APPLICATION_KIND: of[0]}
        marks[names.APPLICATION_NAME] = of[1]
    if affinity_class is not None:
        marks[names.AFFINITY_CLASS] = affinity_class
    if previous is not None:
        marks[names.PREVIOUS_CLASS] = previous
    return body(FLUX, names.RELEASE_KIND, name, labels=marks, **given)


def installed(api_version: str, kind: str, name: str, by: str = "postgres-main-db", **given: Any) -> Object:
    """Build an object with the label of Flux."""
    return body(api_version, kind, name, labels={names.FLUX_NAME: by}, **given)


def affinity_class_body(name: str, node_selector: Mapping[str, str] | None = None, **spec: Any) -> Object:
    selector = {ZONE: name} if node_selector is None else dict(node_selector)
    spec = {**({"nodeSelector": selector} if selector else {}), **spec}
    return body(names.API_VERSION, names.CLASS_KIND, name, namespace="", spec=spec)


def terms(*expressions: tuple[str, str, list[str]]) -> Object:
    """Build a nodeAffinity with one required term for each expression."""
    found = [{"matchExpressions": [{"key": k, "operator": o, "values": v}]} for k, o, v in expressions]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}


def tenant(name: str = "acme", **spec: Any) -> Object:
    return body(names.APPS_API_VERSION, names.TENANT_KIND, name, namespace=names.TENANT_ROOT, spec=spec)


def node(name: str, zone: str = "") -> Object:
    return body("v1", "Node", name, namespace="", labels={ZONE: zone} if zone else {})


def namespace(name: str = NAMESPACE, labels: Mapping[str, str] | None = None) -> Object:
    return body("v1", "Namespace", name, namespace="", labels=labels)


def pod(name: str = "main-db-1", owners: Sequence[Object] = (), *, spec: Object | None = None, **given: Any) -> Object:
    return body("v1", "Pod", name, owners=owners, spec={"containers": [], **(spec or {})}, **given)


def review(obj: Object, *, operation: str = "CREATE", old: Object | None = None, **given: Any) -> AdmissionRequest:
    group, _, version = obj["apiVersion"].rpartition("/")
    answers: Mapping[ObjectRef, LookedUp] = given.pop("answers", {})
    return msgspec.structs.replace(
        msgspec.convert(
            {
                "uid": "u-1",
                "operation": operation,
                "kind": {"group": group, "version": version, "kind": obj["kind"]},
                "name": obj["metadata"].get("name", ""),
                "namespace": obj["metadata"].get("namespace", ""),
                "userInfo": {"username": "jane"},
                "object": None if operation == "DELETE" else obj,
                "oldObject": obj if operation == "DELETE" else old,
                **given,
            },
            AdmissionRequest,
        ),
        answers=answers,
    )


class PlacementView:
    """View of the given objects. Kinds without objects are not watched, except built-in ones."""

    def __init__(self, *bodies: Object) -> None:
        self._kept: dict[str, dict[tuple[str, str], Any]] = {kind: {} for kind in (*_TYPES, *_WHOLE)}
        for each in bodies:
            metadata, kind = each["metadata"], each["kind"]
            group = each["apiVersion"].rpartition("/")[0]
            key = (metadata.get("namespace", ""), metadata["name"])
            for name in (kind, f"{kind}.{group or 'core'}"):
                self._kept.setdefault(name, {})[key] = self._seen(each)
        self._listed = {kind: tuple(each for _, each in sorted(kept.items())) for kind, kept in self._kept.items()}

    def _seen(self, each: Object) -> Any:
        if each["kind"] in _WHOLE or (each["apiVersion"] == names.APPS_API_VERSION and each["kind"] not in _TYPES):
            return each
        return msgspec.convert(each, _TYPES.get(each["kind"], PartialObject))

    def get(self, kind: str, name: str, namespace: str = "") -> Any | None:
        return self._kept[kind].get((namespace, name))

    def all(self, kind: str) -> Sequence[Any]:
        return self._listed[kind]

    def counted(self, kind: str, index: str, value: str) -> int:
        return len(self.indexed(kind, index, value)) if kind in self._listed else 0

    def indexed(self, kind: str, index: str, value: str) -> Sequence[Any]:
        return [each for each in self.all(kind) if value in _indexes(index, each)]


def _indexes(index: str, obj: Any) -> Iterable[str]:
    if index == names.BY_NAMESPACE:
        return (obj["metadata"]["namespace"],)
    if isinstance(obj, Tenant):
        return (obj.spec.default_affinity_class or "", *(obj.spec.allowed_affinity_classes or ()))
    labels = obj["metadata"].get("labels") or {}
    named = (obj.get("spec") or {}).get("affinityClass", "")
    return filter(None, (named, labels.get(names.AFFINITY_CLASS, ""), labels.get(names.PREVIOUS_CLASS, "")))
