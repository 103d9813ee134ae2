"""Builders of the Cluster API objects of one cluster as a server returns them, and of whole snapshots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning import generation
from nodeyard.capabilities.pools.snapshot import (
    Machine,
    Management,
    PoolsSnapshot,
    Served,
    TemplateMeta,
    Workload,
)
from nodeyard.capabilities.pools.types import LatticeCluster, LatticeNodeClass, resolved_pools
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Namespace, ObjectMeta
from nodeyard.kube.patch import merge_patch

from .pools import machine

SERVED = Served(dict.fromkeys(("DevCluster", "DevMachineTemplate"), ("v1beta2",)))
BOTH_SERVED = Served({**SERVED.versions, "DockerCluster": ("v1beta2",), "DockerMachineTemplate": ("v1beta2",)})


def stored(obj: Object, manager: str = names.MANAGER, **status: Any) -> Object:
    """Return the object as the server stores it after an apply by the manager."""
    fields = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    owned = {"f:metadata": _fields({k: v for k, v in obj["metadata"].items() if k in ("labels", "annotations")})}
    owned |= _fields(fields)
    metadata = {
        **obj["metadata"],
        "uid": f"uid-{obj['metadata']['name']}",
        "resourceVersion": "1",
        "generation": 1,
        "managedFields": [applied_by(manager, owned)],
    }
    return {**obj, "metadata": metadata, **({"status": status} if status else {})}


def applied_by(manager: str, fields: Object) -> Object:
    return {"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields}


def _fields(value: Any) -> Object:
    """Return FieldsV1 of a body, with each list as one value."""
    return {f"f:{name}": _fields(each) if isinstance(each, dict) else {} for name, each in value.items()}


def with_replicas(deployment: Object, number: int, manager: str = names.REPLICAS_MANAGER) -> Object:
    """Scale a MachineDeployment by a manager, which then owns spec.replicas."""
    metadata = deployment["metadata"]
    entries = [without_replicas(entry) for entry in metadata["managedFields"]]
    entries.append(applied_by(manager, {"f:spec": {"f:replicas": {}}}))
    spec = {**deployment["spec"], "replicas": number}
    return {**deployment, "metadata": {**metadata, "managedFields": entries}, "spec": spec}


def moved(obj: Object) -> Object:
    """Return the object as `clusterctl move` creates it on another server: clusterctl owns all fields as an Update."""
    fields: Object = {}
    for entry in obj["metadata"]["managedFields"]:
        fields = merge_patch(fields, entry["fieldsV1"])
    entry = {**applied_by(names.MOVER, fields), "operation": "Update", "apiVersion": obj["apiVersion"]}
    return {**obj, "metadata": {**obj["metadata"], "managedFields": [entry]}}


def without_replicas(entry: Object) -> Object:
    fields = entry["fieldsV1"]
    spec = {key: value for key, value in fields.get("f:spec", {}).items() if key != "f:replicas"}
    return {**entry, "fieldsV1": {**fields, "f:spec": spec}}


def settled(obj: Object, **more: Any) -> Object:
    """Set a status with all replicas present, up to date and available."""
    number = obj["spec"].get("replicas", 1)
    counters = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
    status = {"observedGeneration": obj["metadata"]["generation"], **dict.fromkeys(counters, number), **more}
    return {**obj, "status": {**obj.get("status", {}), **status}}


def changed(obj: Object, path: str, value: Any) -> Object:
    """Set one field by its dotted path."""
    name, _, rest = path.partition(".")
    return {**obj, name: changed(obj.get(name) or {}, rest, value) if rest else value}


def template_meta(template: generation.Template, lc: LatticeCluster) -> TemplateMeta:
    metadata = template.render(lc)["metadata"]
    found = msgspec.convert({**metadata, "uid": f"uid-{template.name}", "resourceVersion": "1"}, ObjectMeta)
    return TemplateMeta(template.api_version, template.kind, found)


def running(
    lc: LatticeCluster,
    *classes: LatticeNodeClass,
    version: str = "",
    served: Served = SERVED,
    is_pivoted: bool = True,
) -> PoolsSnapshot:
    """Build a snapshot of a cluster with all objects created, scaled and settled at one version."""
    version = version or lc.version
    known = {each.metadata.name: each for each in classes}
    made = [generation.control_plane_template(lc, served)]
    deployments: dict[str, Object] = {}
    machines: list[Machine] = []
    for id, pool in resolved_pools(lc.spec.nodes).items():
        worker = generation.worker_template(lc, id, pool, known.get(pool.node_class), served)
        bootstrap = generation.bootstrap_template(lc, id, pool)
        made += [worker, bootstrap]
        name = names.deployment(lc.name, id)
        body = generation.machine_deployment(
            lc, id, pool, name=name, bootstrap=bootstrap.name, infrastructure_kind=worker.kind,
            infrastructure=worker.name, version=version, replicas=0, node_class=known.get(pool.node_class),
        )  # fmt: skip
        deployments[name] = settled(with_replicas(stored(body), pool.replicas))
        machines += [
            machine(
                f"{name}-{n}",
                name,
                node=f"{name}-{n}",
                spec={"clusterName": lc.name, "version": version},
                status={"phase": "Running"},
            )
            for n in range(pool.replicas)
        ]
    control_plane = stored(generation.control_plane(lc, made[0].name, made[0].kind, version))
    initialized = {"initialization": {"controlPlaneInitialized": True, "infrastructureProvisioned": True}}
    management = Management(
        namespace=msgspec.convert(stored(generation.namespace(lc)), Namespace),
        cluster=stored(generation.cluster(lc, served), **initialized),
        infrastructure=stored(generation.infrastructure_cluster(lc, served)),
        control_plane=settled(control_plane, version=version),
        deployments=deployments,
        machines=machines,
        templates=[template_meta(each, lc) for each in made],
    )
    workload = Workload(uid="root", is_own=is_pivoted)
    return PoolsSnapshot(lc, known, served=served, management=management, workload=workload)


def with_deployment(snapshot: PoolsSnapshot, deployment: Object) -> PoolsSnapshot:
    deployments = {**snapshot.management.deployments, deployment["metadata"]["name"]: deployment}
    return replace(snapshot, management=replace(snapshot.management, deployments=deployments))


def with_management(snapshot: PoolsSnapshot, **given: Any) -> PoolsSnapshot:
    return replace(snapshot, management=replace(snapshot.management, **given))


def legacy(lc: LatticeCluster, replicas: int = 3) -> Object:
    """Build the legacy MachineDeployment that Lattice used before pools."""
    name = names.legacy_deployment(lc.name)
    own = {names.CLUSTER_NAME_LABEL: lc.name, names.DEPLOYMENT_NAME_LABEL: name}
    body = {
        "apiVersion": names.CAPI_API_VERSION,
        "kind": "MachineDeployment",
        "metadata": {"name": name, "namespace": names.namespace(lc.name)},
        "spec": {
            "clusterName": lc.name,
            "replicas": replicas,
            "selector": {"matchLabels": own},
            "template": {
                "metadata": {"labels": own},
                "spec": {
                    "clusterName": lc.name,
                    "version": lc.version,
                    "bootstrap": {
                        "configRef": {"apiGroup": names.BOOTSTRAP_GROUP, "kind": "KubeadmConfigTemplate", "name": name}
                    },
                    "infrastructureRef": {
                        "apiGroup": names.INFRASTRUCTURE_GROUP,
                        "kind": "DevMachineTemplate",
                        "name": name,
                    },
                },
            },
        },
    }
    return settled(stored(body, "lattice"))
