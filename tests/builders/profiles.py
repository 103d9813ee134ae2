"""Roles, nodes, profiles, service objects and ProfileServices: as the wire has them, and as the planner does.

Each comes in two forms. `node_body(...)` is the object a person would apply, `node(...)` the same as a struct that a
server gave back: with uid and generation. Fields of the spec are given by their names on the wire, annotations and
labels by keyword.

    node("edpm-compute-1", annotations={names.COMPUTE_PROFILE: "dell-r740-dedicated-cpus"})
    snapshot(node(), role(annotations={names.CELL: "nova-cell1"}), nova=[profile("shared", SHARED)])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.faults import KindFault
from nodeyard.capabilities.profiles.planning.registry import BUILT_IN, service_from
from nodeyard.capabilities.profiles.snapshot import Budget, NodeSnapshot, Profile, Service
from nodeyard.capabilities.profiles.types import (
    ComputeProfile,
    NetworkProfile,
    NovaExternalCompute,
    OpenStackDataPlaneNode,
    OpenStackDataPlaneRole,
    OVNMetadataAgent,
    ProfileService,
    TelemetryProfile,
)
from nodeyard.kube.json import Object

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NAMESPACE = "openstack"
ROLE = "edpm-compute"
NODE = "edpm-compute-0"
SHARED = "[compute]\ncpu_shared_set = 4-12,^8,15\n[DEFAULT]\ncpu_allocation_ratio = 4.0\n"
DEDICATED = "[compute]\ncpu_dedicated_set = 4-12,^8,15\n[DEFAULT]\ncpu_allocation_ratio = 1.0\n"
DPDK = "[ovs]\ndatapath_type = netdev\n"
SEED_ROLE_ANNOTATIONS = {
    names.CELL: "nova-cell1",
    names.COMPUTE_PROFILE: "dell-r740-shared-cpus",
    names.TELEMETRY_PROFILE: "collector",
}
SEED_NODE_ANNOTATIONS = {
    names.COMPUTE_PROFILE: "dell-r740-dedicated-cpus",
    names.NETWORK_PROFILE: "dpdk",
}
"""Annotations of edpm-compute-1."""

NEUTRON, NOVA, TELEMETRY = SERVICES = BUILT_IN


# the data plane


def role_body(name: str = ROLE, *, spec: Object | None = None, **given: Any) -> Object:
    """Split `annotations`, `labels` and `namespace` from the fields of the spec."""
    return _body(names.DATAPLANE_API_VERSION, names.ROLE_KIND, name, spec, given)


def role(name: str = ROLE, **given: Any) -> OpenStackDataPlaneRole:
    return stored(role_body(name, **given), OpenStackDataPlaneRole)


def node_body(name: str = NODE, *, spec: Object | None = None, **given: Any) -> Object:
    """Return a node of role edpm-compute; `role=""` means no role."""
    fields = {"role": ROLE, **given} if spec is None else given
    return _body(names.DATAPLANE_API_VERSION, names.NODE_KIND, name, spec, fields)


def node(name: str = NODE, *, status: Object | None = None, **given: Any) -> OpenStackDataPlaneNode:
    return stored(node_body(name, **given), OpenStackDataPlaneNode, status)


# profiles


def compute_profile_body(name: str = "dell-r740-shared-cpus", config: str = SHARED, **given: Any) -> Object:
    spec = {"customComputeServiceConfig": config, **given.pop("spec", {})}
    return _body(names.NOVA_API_VERSION, names.COMPUTE_PROFILE_KIND, name, spec, given)


def network_profile_body(name: str = "dpdk", config: str = DPDK, **given: Any) -> Object:
    spec = {"customServiceConfig": config, **given.pop("spec", {})}
    return _body(names.NEUTRON_API_VERSION, names.NETWORK_PROFILE_KIND, name, spec, given)


def telemetry_profile_body(name: str = "collector", config: str = "", **given: Any) -> Object:
    spec = {**({"customServiceConfig": config} if config else {}), **given.pop("spec", {})}
    return _body(names.TELEMETRY_API_VERSION, names.TELEMETRY_PROFILE_KIND, name, spec, given)


def compute_profile(name: str = "dell-r740-shared-cpus", *args: Any, **given: Any) -> ComputeProfile:
    return stored(compute_profile_body(name, *args, **given), ComputeProfile)


def network_profile(name: str = "dpdk", *args: Any, **given: Any) -> NetworkProfile:
    return stored(network_profile_body(name, *args, **given), NetworkProfile)


def telemetry_profile(name: str = "collector", *args: Any, **given: Any) -> TelemetryProfile:
    return stored(telemetry_profile_body(name, *args, **given), TelemetryProfile)


def profile(name: str = "dell-r740-shared-cpus", config: str = "", **given: Any) -> Profile:
    """Return a parsed profile of any service."""
    return Profile(name=name, config=config, **{"uid": f"uid-{name}", "generation": 1, **given})


# service objects


def compute_body(node: str = NODE, profile: str = "", **given: Any) -> Object:
    """Return the NovaExternalCompute of a node."""
    spec = {"dataplaneNodeName": node, **({"computeProfileName": profile} if profile else {})}
    return _body(names.NOVA_API_VERSION, names.COMPUTE_KIND, node, {**spec, **given.pop("spec", {})}, given)


def compute(node: str = NODE, profile: str = "", *, status: Object | None = None, **given: Any) -> NovaExternalCompute:
    return stored(compute_body(node, profile, **given), NovaExternalCompute, status)


def agent_body(node: str = NODE, profile: str = "dpdk", **given: Any) -> Object:
    """Return the OVNMetadataAgent of a node."""
    spec = {"dataplaneNodeName": node, **({"networkProfileName": profile} if profile else {})}
    return _body(names.NEUTRON_API_VERSION, names.AGENT_KIND, node, {**spec, **given.pop("spec", {})}, given)


def agent(node: str = NODE, profile: str = "dpdk", *, status: Object | None = None, **given: Any) -> OVNMetadataAgent:
    return stored(agent_body(node, profile, **given), OVNMetadataAgent, status)


def ready(hash: str) -> Object:
    """Return the status of a service object whose operator reports this hash."""
    moment = NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Ready", "status": "True", "reason": "Deployed", "message": "", "lastTransitionTime": moment}
    return {"hash": {names.REPORTED_HASH: hash}, "conditions": [condition]}


# services


def service_body(name: str = "storage", **spec: Any) -> Object:
    """Return a ProfileService with StorageProfiles and StorageAgents; None omits a field."""
    group = f"{name}.openstack.org"
    whole: Object = {
        "annotationKey": f"{group}/{name}-profile",
        "profile": {"apiVersion": f"{group}/v1", "kind": f"{name.capitalize()}Profile"},
        "object": {"apiVersion": f"{group}/v1", "kind": f"{name.capitalize()}Agent"},
        "nodeField": "nodeName",
        "profileField": "profileName",
        "configField": "config",
        **spec,
    }
    return {
        "apiVersion": names.SERVICE_API_VERSION,
        "kind": names.SERVICE_KIND,
        "metadata": {"name": name},
        "spec": {key: value for key, value in whole.items() if value is not None},
    }


def profile_service(name: str = "storage", *, status: Object | None = None, **spec: Any) -> ProfileService:
    return stored(service_body(name, **spec), ProfileService, status)


def service(name: str = "storage", **spec: Any) -> Service:
    """Return a declared service as the planner reads it."""
    return service_from(profile_service(name, **spec))


# snapshots


def snapshot(
    of: OpenStackDataPlaneNode | None = None,
    role: OpenStackDataPlaneRole | None = None,
    *,
    services: Sequence[Service] = SERVICES,
    objects: Mapping[str, Object] | None = None,
    configurations: Mapping[str, Sequence[Object]] | None = None,
    budgets: Mapping[str, Budget] | None = None,
    key_conflicts: Mapping[str, Sequence[str]] | None = None,
    kind_faults: Mapping[str, KindFault] | None = None,
    **profiles: Iterable[Profile],
) -> NodeSnapshot:
    """Return the snapshot of a node, with profiles by service: `nova=[profile("shared", SHARED)]`."""
    return NodeSnapshot(
        node=of or node(),
        role=role,
        services=tuple(sorted(services, key=lambda each: each.name)),
        key_conflicts=key_conflicts or {},
        profiles={service: {each.name: each for each in found} for service, found in profiles.items()},
        objects=objects or {},
        configurations=configurations or {},
        budgets=budgets or {},
        kind_faults=kind_faults or {},
    )


def seed_profiles() -> dict[str, list[Profile]]:
    """Return the profiles of the design's example, for `snapshot(..., **seed_profiles())`."""
    return {
        names.NOVA: [profile("dell-r740-shared-cpus", SHARED), profile("dell-r740-dedicated-cpus", DEDICATED)],
        names.NEUTRON: [profile("dpdk", DPDK)],
        names.TELEMETRY: [profile("collector")],
    }


# bodies


def stored(body: Object, kind: type[Any], status: Object | None = None) -> Any:
    """Decode the body as the API server would return it."""
    return msgspec.convert(as_stored(body, status), kind)


def as_stored(body: Object, status: Object | None = None) -> Object:
    """Return the body of a struct."""
    metadata = body["metadata"]
    added = {"uid": f"uid-{metadata['name']}", "generation": 1, "resourceVersion": "1"}
    whole = {**body, "metadata": {**added, **metadata}}
    return whole if status is None else {**whole, "status": status}


_METADATA = ("annotations", "labels", "finalizers", "ownerReferences", "uid", "generation", "deletionTimestamp")


def _body(api_version: str, kind: str, name: str, spec: Object | None, given: Mapping[str, Any]) -> Object:
    fields = {key: value for key, value in given.items() if key not in (*_METADATA, "namespace")}
    metadata = {key: given[key] for key in _METADATA if given.get(key)}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": given.get("namespace", NAMESPACE), **metadata},
        "spec": {**(spec or {}), **fields},
    }
