"""Builders of Tenants, Namespaces and values, and the effects of plans on them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.tenants import plan_tenants
from nodeyard.capabilities.affinity.snapshot import TenantsSnapshot
from nodeyard.capabilities.affinity.types import Tenant
from nodeyard.kube.json import Object
from nodeyard.kube.manifests import load
from nodeyard.kube.objects import Namespace
from nodeyard.kube.patch import merge_patch
from nodeyard.plan.apply_preview import merge_fields
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Planned, Verb

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DELETED = "2026-03-01T11:00:00Z"
CLASSES = frozenset({"dc1", "dc2", "gpu"})


def tenant_body(path: str, spec: Object | None = None, **metadata: Any) -> Object:
    """Build a Tenant by its path in the tree: `acme`, `acme/web`, or `root`."""
    *above, name = path.split("/")
    namespace = names.TENANT_ROOT
    for each in above:
        namespace = names.tenant_namespace(namespace, each)
    about = {"name": name, "namespace": namespace, "uid": f"uid-{path}", "generation": 1, "resourceVersion": "7"}
    return {
        "apiVersion": names.APPS_API_VERSION,
        "kind": names.TENANT_KIND,
        "metadata": {**about, **metadata},
        "spec": spec or {},
    }


def tenant(path: str, default: str | None = None, allowed: Iterable[str] | None = None, **given: Any) -> Tenant:
    spec = given.pop("spec", {})
    if default is not None:
        spec = {**spec, "defaultAffinityClass": default}
    if allowed is not None:
        spec = {**spec, "allowedAffinityClasses": list(allowed)}
    return msgspec.convert(tenant_body(path, spec, **given), Tenant)


def kept(each: Tenant) -> Tenant:
    """Return the tenant with our finalizer."""
    metadata = msgspec.structs.replace(each.metadata, finalizers=(names.TENANT_FINALIZER,))
    return msgspec.structs.replace(each, metadata=metadata)


def deleted(each: Tenant) -> Tenant:
    metadata = msgspec.structs.replace(kept(each).metadata, deletion_timestamp=NOW)
    return msgspec.structs.replace(each, metadata=metadata)


def namespace(name: str, *, of: str = "", **metadata: Any) -> Namespace:
    """Build a Namespace; `of` is the uid of the Tenant that it was created for."""
    annotations = {names.TENANT: of} if of else {}
    about = {"name": name, "uid": f"uid-{name}", "resourceVersion": "3", "annotations": annotations, **metadata}
    return msgspec.convert({"metadata": about}, Namespace)


def secret(namespace: str, text: str, **more: Any) -> Object:
    """Return the object as an item of a list: without apiVersion and kind."""
    encoded = base64.b64encode(text.encode()).decode()
    metadata = {"name": names.VALUES_SECRET, "namespace": namespace, "uid": f"uid-values-{namespace}"}
    return {"metadata": metadata, "type": "Opaque", "data": {names.VALUES_KEY: encoded}, **more}


def text_of(secret: Object) -> str:
    return base64.b64decode(secret["data"][names.VALUES_KEY]).decode()


def values_of(secret: Object) -> Any:
    return load(text_of(secret))


def snapshot(*tenants: Tenant, **given: Any) -> TenantsSnapshot:
    """Build a snapshot with the Namespace `tenant-root` and the given ones."""
    spaces: Mapping[str, Namespace] = {
        each.metadata.name: each for each in (namespace(names.TENANT_ROOT), *given.pop("namespaces", ()))
    }
    secrets = {each["metadata"]["namespace"]: each for each in given.pop("secrets", ())}
    ordered = sorted(tenants, key=lambda each: (each.namespace, each.name))
    return TenantsSnapshot(
        tenants=ordered, classes=given.pop("classes", CLASSES), namespaces=spaces, values=secrets, **given
    )


def planned(world: TenantsSnapshot) -> Planned:
    builder = PlanBuilder(NOW)
    plan_tenants(builder, world)
    return builder.planned(names.CAPABILITY, names.TENANTS_KEY)


def reasons(found: Planned) -> list[str]:
    """Return the blocked reasons."""
    return [each.reason for each in found.plan.blocked]


def done(found: Planned) -> list[str]:
    return [f"{each.verb.value} {each.id}" for each in found.plan.actions]


def after(world: TenantsSnapshot, found: Planned) -> TenantsSnapshot:
    """Return the snapshot after all actions; deleted objects are gone at once."""
    for action in found.plan.actions:
        world = _carried_out(world, action.verb, action.object.kind, action.object, found.write(action).body)
    return world


def _carried_out(world: TenantsSnapshot, verb: Verb, kind: str, ref: Any, body: Any) -> TenantsSnapshot:
    if kind == names.TENANT_KIND:
        return replace(world, tenants=[each for each in _patched(world, ref, body) if not _is_gone(each)])
    if kind == "Secret":
        live = world.values.get(ref.namespace, {"metadata": {"uid": f"uid-values-{ref.namespace}"}})
        kept = {name: value for name, value in merge_fields(live, body).items() if name not in ("apiVersion", "kind")}
        return replace(world, values={**world.values, ref.namespace: kept})
    if verb is Verb.DELETE:
        return replace(world, namespaces={name: each for name, each in world.namespaces.items() if name != ref.name})
    found = world.namespaces.get(ref.name)
    before = {"metadata": {"uid": f"uid-{ref.name}"}} if found is None else msgspec.to_builtins(found)
    merged = msgspec.convert(merge_fields(before, body), Namespace)
    return replace(world, namespaces={**world.namespaces, ref.name: merged})


def _patched(world: TenantsSnapshot, ref: Any, body: Object) -> Iterable[Tenant]:
    for each in world.tenants:
        is_meant = (each.namespace, each.name) == (ref.namespace, ref.name)
        wire = msgspec.to_builtins(each)
        yield msgspec.convert(merge_patch(wire, body), Tenant) if is_meant else each


def _is_gone(each: Tenant) -> bool:
    return each.is_deleting and not each.metadata.finalizers


def settled(world: TenantsSnapshot, passes: int = 8) -> TenantsSnapshot:
    """Return the snapshot after passes until nothing is left to do."""
    for _ in range(passes):
        found = planned(world)
        if not found.plan.actions:
            return world
        world = after(world, found)
    raise AssertionError(f"still to do after {passes} passes: {done(planned(world))}")
