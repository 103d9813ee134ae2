"""Builders of applications, their definitions and their HelmReleases, as a server returns them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.class_record import Record, encode, previous_classes
from nodeyard.capabilities.affinity.planning.inheritance import EffectivePolicy
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, Tenant
from nodeyard.kube.json import Json, Object
from nodeyard.plan.builder import PlanBuilder
from nodeyard.runtime.webhooks import AdmissionRequest, GroupVersionKind

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ZONE = "topology.kubernetes.io/zone"
NAMESPACE = "tenant-acme"
SCHEMA: Object = {
    "type": "object",
    "properties": {"replicas": {"type": "integer", "default": 2}, "size": {"type": "string"}},
}


def builder() -> PlanBuilder:
    return PlanBuilder(NOW)


def definition_body(kind: str = "Postgres", *, schema: Any = SCHEMA, **given: Any) -> Object:
    lower = kind.lower()
    metadata = {"name": given.pop("name", lower), "uid": f"uid-{lower}", "generation": 1, "resourceVersion": "1"}
    application = {
        "kind": kind,
        "plural": given.pop("plural", f"{lower}es"),
        "singular": given.pop("singular", lower),
        "openAPISchema": schema if isinstance(schema, str) else json.dumps(schema),
    }
    release = {
        "prefix": given.pop("prefix", f"{lower}-"),
        "labels": given.pop("labels", {names.SHARDING_KEY: "tenants"}),
        "chartRef": given.pop(
            "chart", {"kind": "ExternalArtifact", "name": f"{lower}-chart", "namespace": "cozy-system"}
        ),
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.DEFINITION_KIND,
        "metadata": {**metadata, **given},
        "spec": {"application": application, "release": release},
    }


def definition(kind: str = "Postgres", **given: Any) -> ApplicationDefinition:
    return msgspec.convert(definition_body(kind, **given), ApplicationDefinition)


def application(
    spec: Object | None = None, *, kind: str = "Postgres", name: str = "main-db", **metadata: Any
) -> Object:
    return {
        "apiVersion": names.APPS_API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "generation": 1, **metadata},
        "spec": {"replicas": 3} if spec is None else spec,
    }


def affinity_class(name: str, node_selector: Mapping[str, str] | None = None, **given: Any) -> AffinityClass:
    metadata = {"name": name, "uid": f"uid-{name}", **given.pop("metadata", {})}
    spec = {"nodeSelector": {ZONE: name} if node_selector is None else dict(node_selector), **given}
    return msgspec.convert({"metadata": metadata, "spec": spec}, AffinityClass)


def policy(default: str = "", allowed: tuple[str, ...] | None = None, fault: str = "") -> EffectivePolicy:
    tenant = msgspec.convert({"metadata": {"name": "acme", "namespace": names.TENANT_ROOT}}, Tenant)
    return EffectivePolicy(tenant=tenant, default=default, allowed=allowed, fault=fault)


CLASSES = {each.name: each for each in (affinity_class("dc1"), affinity_class("dc2"), affinity_class("dc3"))}


def snapshot(spec: Object | None = None, **given: Any) -> ApplicationSnapshot:
    """Build the snapshot of an application with this spec, or of `app`. The class of its release is recorded on it."""
    app = given.pop("app", None) or application(spec)
    release = given.get("release")
    return ApplicationSnapshot(
        application=app if release is None else with_record(app, release),
        definition=given.pop("definition", None) or definition(),
        classes=given.pop("classes", CLASSES),
        **given,
    )


def with_record(app: Object, release: Object) -> Object:
    """Return the application after the pass that created this release; unchanged if it has a record."""
    metadata, shown = app["metadata"], release["metadata"]
    labels, known = shown.get("labels") or {}, metadata.get("annotations") or {}
    if names.CLASS_RECORD in known:
        return app
    record = Record(
        uid=metadata["uid"],
        release=shown.get("name", ""),
        affinity_class=labels.get(names.AFFINITY_CLASS, ""),
        source=(shown.get("annotations") or {}).get(names.CLASS_SOURCE, ""),
        previous=previous_classes(labels),
    )
    return {**app, "metadata": {**metadata, "annotations": {**known, names.CLASS_RECORD: encode(record)}}}


def as_applied(body: Object, live: Object | None = None, **metadata: Any) -> Object:
    """Return the body as the server stores it after our apply: with our managed fields, at the next generation."""
    fields = {key: _fields(body[key]) for key in ("spec",) if key in body}
    about = {key: _fields(body["metadata"][key]) for key in ("labels", "annotations") if key in body["metadata"]}
    owned = {"f:metadata": {f"f:{key}": value for key, value in about.items()}}
    owned |= {f"f:{key}": value for key, value in fields.items()}
    generation = 1 if live is None else live["metadata"]["generation"] + 1
    entry = {"manager": names.MANAGER, "operation": "Apply", "fieldsV1": owned}
    added = {"uid": "uid-live", "generation": generation, "resourceVersion": str(generation), "managedFields": [entry]}
    return {**body, "metadata": {**body["metadata"], **added, **metadata}}


def _fields(value: Json) -> Object:
    """Return FieldsV1 of a value. Maps are owned member by member, other values as a whole."""
    if not isinstance(value, dict) or not value:
        return {}
    return {f"f:{name}": _fields(member) for name, member in value.items()}


def with_ready(release: Object, status: str = "True", **given: Any) -> Object:
    """Return the release with the status that Flux reports, by default of its current generation."""
    generation = given.pop("generation", release["metadata"]["generation"])
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": "InstallSucceeded",
            "message": "done",
            "observedGeneration": generation,
        }
        for kind in ("Ready", "Released")
    ]
    return {**release, "status": {"observedGeneration": generation, "conditions": conditions, **given}}


class ApplicationsView:
    """View of these bodies: definitions, classes, tenants, releases, and applications by kind."""

    _TYPES: Mapping[str, type[Any]] = {
        names.DEFINITION_KIND: ApplicationDefinition,
        names.CLASS_KIND: AffinityClass,
        names.TENANT_KIND: Tenant,
    }

    def __init__(self, *bodies: Object) -> None:
        whole = (names.RELEASE_KIND, "APIService")
        self._kept: dict[str, dict[tuple[str, str], Any]] = {kind: {} for kind in (*self._TYPES, *whole)}
        for body in bodies:
            kind, metadata = body["kind"], body["metadata"]
            type = self._TYPES.get(kind)
            known = kind if kind in self._kept else f"{kind}.{names.APPS_GROUP}"
            key = (metadata.get("namespace", ""), metadata["name"])
            self._kept.setdefault(known, {})[key] = msgspec.convert(body, type) if type else body

    def get(self, kind: str, name: str, namespace: str = "") -> Any | None:
        return self._kept[kind].get((namespace, name))

    def all(self, kind: str) -> tuple[Any, ...]:
        return tuple(each for _key, each in sorted(self._kept[kind].items()))


def api_service() -> Object:
    """Build the APIService of CozyStack's API server, which serves tenants and applications."""
    spec = {"service": {"name": "cozystack-api", "namespace": "cozy-system"}}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{names.VERSION}.{names.APPS_GROUP}"},
        "spec": spec,
    }


def class_body(name: str) -> Object:
    metadata = {"name": name, "uid": f"uid-{name}"}
    return {"apiVersion": names.API_VERSION, "kind": names.CLASS_KIND, "metadata": metadata, "spec": {}}


def tenant_body(name: str = "acme", **spec: Any) -> Object:
    metadata = {"name": name, "namespace": names.TENANT_ROOT, "uid": f"uid-{name}"}
    return {"apiVersion": names.APPS_API_VERSION, "kind": names.TENANT_KIND, "metadata": metadata, "spec": spec}


def question(new: Object | None, old: Object | None = None, operation: str = "") -> AdmissionRequest:
    """Build the admission request that changes `old` to `new`."""
    subject = new or old or {}
    group, _, version = subject["apiVersion"].partition("/")
    return AdmissionRequest(
        uid="u",
        operation=operation or ("CREATE" if old is None else "UPDATE"),  # type: ignore[arg-type]
        kind=GroupVersionKind(group=group, version=version, kind=subject["kind"]),
        name=subject["metadata"].get("name", ""),
        namespace=subject["metadata"].get("namespace", ""),
        object=new,
        old_object=old,
    )
