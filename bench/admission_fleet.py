"""The cluster and the reviews of the admission benchmark: applications, and the pods that their controllers create.

    Pod -> ReplicaSet -> Deployment  ~label~>  HelmRelease of a part  ~label~>  HelmRelease of the application

All pods differ, and the lineage of each has four objects. A pod is what an API server sends after defaulting: a
container with environment and token, three kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid5

from bench.load import Call, encode
from nodeyard.capabilities.affinity import names
from nodeyard.kube.json import Object
from nodeyard.kube.names import ZONE

APPLICATIONS = 500
PODS = 5000
TENANTS = 20
ZONES = ("dc1", "dc2", "dc3")
_SPACE = UUID(int=2)

RELEASE_CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{names.RELEASE_PLURAL}.{names.FLUX_GROUP}"},
    "spec": {
        "group": names.FLUX_GROUP,
        "scope": "Namespaced",
        "names": {"plural": names.RELEASE_PLURAL, "singular": "helmrelease", "kind": names.RELEASE_KIND},
        "versions": [
            {
                "name": names.FLUX_VERSION,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""A minimal HelmRelease CRD: no chart is installed here."""


def namespace_of(number: int) -> str:
    return f"tenant-t{number % TENANTS}"


def zone_of(number: int) -> str:
    return ZONES[number % len(ZONES)]


def crds_and_namespaces() -> Iterator[Call]:
    yield Call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", encode(RELEASE_CRD))
    for number in range(TENANTS):
        yield Call("POST", "/api/v1/namespaces", encode({"metadata": {"name": namespace_of(number)}}))


def classes() -> Iterator[Call]:
    for zone in ZONES:
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.CLASS_KIND,
            "metadata": {"name": zone},
            "spec": {"nodeSelector": {ZONE: zone}},
        }
        yield Call("POST", f"/apis/{names.API_VERSION}/{names.CLASS_PLURAL}", encode(body))


def releases() -> Iterator[Call]:
    """Yield one HelmRelease for each application, and one for the part that has the pods."""
    for number in range(APPLICATIONS):
        path = f"/apis/{names.FLUX_API_VERSION}/namespaces/{namespace_of(number)}/{names.RELEASE_PLURAL}"
        labels = {
            names.APPLICATION_GROUP: names.APPS_GROUP,
            names.APPLICATION_KIND: "Postgres",
            names.APPLICATION_NAME: f"db{number}",
            names.AFFINITY_CLASS: zone_of(number),
        }
        yield Call("POST", path, encode(_release(f"postgres-db{number}", labels)))
        part = {names.FLUX_NAME: f"postgres-db{number}"}
        yield Call("POST", path, encode(_release(f"postgres-db{number}-part", part)))


def _release(name: str, labels: dict[str, str]) -> Object:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": names.FLUX_API_VERSION, "kind": names.RELEASE_KIND, "metadata": metadata, "spec": {}}


def deployments() -> Iterator[Call]:
    for number in range(APPLICATIONS):
        labels = {names.FLUX_NAME: f"postgres-db{number}-part"}
        yield Call("POST", _apps(number, "deployments"), encode(_workload("Deployment", number, {"labels": labels})))


def replica_sets(uids: dict[str, str]) -> Iterator[Call]:
    """Yield a ReplicaSet for each Deployment; `uids` are those of the Deployments, by namespace and name."""
    for number in range(APPLICATIONS):
        uid = uids[f"{namespace_of(number)}/db{number}"]
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"db{number}", "uid": uid, "controller": True}
        yield Call(
            "POST",
            _apps(number, "replicasets"),
            encode(_workload("ReplicaSet", number, {"ownerReferences": [owner]})),
        )


def _apps(number: int, plural: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace_of(number)}/{plural}"


def _workload(kind: str, number: int, metadata: Object) -> Object:
    labels = {"app": f"db{number}"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "db", "image": "postgres:16"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": f"db{number}", **metadata}, "spec": spec}


# reviews


def reviews(uids: dict[str, str], pods: int = PODS) -> Iterator[bytes]:
    """Yield reviews of pods that satisfy their class; `uids` are those of the ReplicaSets, by namespace and name."""
    for number in range(pods):
        application = number % APPLICATIONS
        namespace = namespace_of(application)
        pod = _pod(number, application, namespace, uids[f"{namespace}/db{application}"])
        yield encode(_review(number, namespace, pod))


def _review(number: int, namespace: str, pod: Object) -> Object:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    request = {
        "uid": str(uuid5(_SPACE, f"question {number}")),
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": pod["metadata"]["name"],
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {
            "username": "system:serviceaccount:kube-system:replicaset-controller",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
        },
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _pod(number: int, application: int, namespace: str, owner: str) -> Object:
    name = f"db{application}"
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": owner, "controller": True}
    metadata = {
        "name": f"{name}-{number:05x}",
        "generateName": f"{name}-",
        "namespace": namespace,
        "uid": str(uuid5(_SPACE, f"pod {number}")),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": name, "pod-template-hash": "5f6b9d7c4"},
        "ownerReferences": [{**reference, "blockOwnerDeletion": True}],
        "managedFields": [_managed(owner)],
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": _spec(application),
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def _spec(application: int) -> Object:
    token = {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}], "defaultMode": 420}
    container = {
        "name": "db",
        "image": "registry.example.dev/postgres:16.4",
        "env": [{"name": f"SETTING_{place}", "value": f"value-{place}"} for place in range(12)],
        "ports": [{"name": "sql", "containerPort": 5432, "protocol": "TCP"}],
        "resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}},
        "volumeMounts": [{"name": "token", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io"}],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    lasting = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    return {
        "volumes": [{"name": "token", "projected": token}],
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "nodeSelector": {ZONE: zone_of(application)},
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", **lasting},
            {"key": "node.kubernetes.io/unreachable", **lasting},
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _managed(owner: str) -> Object:
    container: Object = {field: {} for field in ("f:image", "f:imagePullPolicy", "f:name", "f:resources", "f:env")}
    metadata: Object = {
        "f:generateName": {},
        "f:labels": {".": {}, "f:app": {}, "f:pod-template-hash": {}},
        "f:ownerReferences": {".": {}, f'k:{{"uid":"{owner}"}}': {}},
    }
    spec = {"f:containers": {'k:{"name":"db"}': {".": {}, **container}}, "f:nodeSelector": {}, "f:restartPolicy": {}}
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": metadata, "f:spec": spec},
    }
