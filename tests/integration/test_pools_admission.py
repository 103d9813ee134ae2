"""CRD validation of new LatticeClusters: valid ones pass, invalid ones are rejected with field and message."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.builders.pool_admission import CLUSTERS, DRY, KEY, VALUE, refused, session
from tests.builders.pools import AWS, DOCKER, PROXMOX, SEED_POOLS, cluster_body, pool, taint

from nodeyard.kube.json import Object


@pytest.fixture(scope="module")
def http(api):
    return session(api)


def gpu(**given: Any) -> Object:
    """A cluster with one pool named gpu that has these fields."""
    return cluster_body(workerPools={"gpu": {"replicas": 1, **given}})


def kubernetes(**given: Any) -> Object:
    return cluster_body(provider={"kubernetes": {"version": "1.32.0", **given}})


def without(body: Object, *path: str) -> Object:
    """The body without the field at this path."""
    changed = copy.deepcopy(body)
    at = changed
    for name in path[:-1]:
        at = at[name]
    del at[path[-1]]
    return changed


def proxmox(**given: Any) -> Object:
    return cluster_body(config={"proxmox": {**PROXMOX["proxmox"], **given}})


GOOD_CLUSTERS = {
    "the design's simple form": cluster_body(controlPlane=3, workers=5),
    "the design's pools": cluster_body(controlPlane=3, workerPools=SEED_POOLS),
    "no workers at all": cluster_body(),
    "no pools at all": cluster_body(workerPools={}),
    "an empty pool": cluster_body(workerPools={"gpu": pool(0)}),
    "min and max": cluster_body(workerPools={"general": pool(5, min=3, max=10)}),
    "min alone without an autoscaler": cluster_body(workerPools={"general": pool(5, min=3)}),
    "autoscaled": cluster_body(
        workerPools={"a": pool(5, min=3, max=10), "b": pool(1)}, autoscaling="ClusterAutoscaler"
    ),
    "policies": cluster_body(poolDeletionPolicy="Orphan", poolDrainTimeout=0, pivot="Never"),
    "a version with its v": cluster_body(version="v1.32.0"),
    "a pre-release": cluster_body(version="v1.33.0-rc.1+build.5"),
    "aws": cluster_body(config=AWS, provider={"credentialsSecretRef": {"name": "aws", "namespace": "lattice-system"}}),
    "proxmox": cluster_body(config=PROXMOX),
    "networks": cluster_body(networking={"podCIDRs": ["10.0.0.0/16", "fd00::/64"], "serviceCIDRs": ["10.1.0.0/16"]}),
    "one key with two effects": gpu(taints=[taint("a=b:NoSchedule"), taint("a:NoExecute")]),
    "the longest names": cluster_body("c" * 56, workerPools={"p": pool()}),
    "as many labels as fit": gpu(labels={f"k{number:02}": "v" * 54 for number in range(17)}),
    "any number of labels that Cluster API brings": gpu(
        labels={f"node.cluster.x-k8s.io/k{number:02}": "v" * 63 for number in range(20)}
    ),
    "what PoolsEnv says besides": cluster_body(
        parentConfig={"host": "a"},
        environment="prod",
        region="eu",
        workload={"b": 1},
        networking={"default": {"cidr": "x"}},
    ),
}


@pytest.mark.parametrize("body", GOOD_CLUSTERS.values(), ids=GOOD_CLUSTERS)
def test_a_good_cluster_passes(http, body):
    answer = http.post(CLUSTERS, body, query=DRY)

    assert answer.status == 201, answer.content
    assert {key: answer.json["spec"][key] for key in body["spec"] if key != "provider"} == {
        key: value for key, value in body["spec"].items() if key != "provider"
    }


def test_omitted_fields_are_defaulted(http):
    spec = http.post(CLUSTERS, cluster_body(), query=DRY).json["spec"]

    assert (spec["poolDeletionPolicy"], spec["poolDrainTimeout"]) == ("Drain", 300)
    assert (spec["pivot"], spec["autoscaling"]) == ("Self", "None")
    assert spec["provider"]["kubernetes"]["bootstrap"] == "kubeadm"


POOLS = "spec.nodes.workerPools"
POOL = f"{POOLS}[gpu]"
"""Field path as CEL rules print it; schema errors use a dot."""
BAD_CLUSTERS = {
    "no control plane": (
        cluster_body(controlPlane=0),
        "spec.nodes.controlPlane",
        "control plane count must be at least 1",
    ),
    "a negative control plane": (
        cluster_body(controlPlane=-1),
        "spec.nodes.controlPlane",
        "control plane count must be at least 1",
    ),
    "an even control plane": (
        cluster_body(controlPlane=4),
        "spec.nodes.controlPlane",
        "control plane count must be odd for HA",
    ),
    "workers and pools": (
        cluster_body(workers=1, workerPools={"a": pool()}),
        "spec.nodes",
        "cannot specify both 'workers' and 'workerPools'",
    ),
    "workers and no pools": (
        cluster_body(workers=1, workerPools={}),
        "spec.nodes",
        "cannot specify both 'workers' and 'workerPools'",
    ),
    "an upper case pool": (
        cluster_body(workerPools={"GPU": pool()}),
        POOLS,
        "invalid pool name 'GPU': must be lowercase alphanumeric with hyphens",
    ),
    "a pool that begins with a hyphen": (
        cluster_body(workerPools={"-gpu": pool()}),
        POOLS,
        "invalid pool name '-gpu': must be lowercase alphanumeric with hyphens",
    ),
    "a pool that ends with a hyphen": (
        cluster_body(workerPools={"gpu-": pool()}),
        POOLS,
        "invalid pool name 'gpu-': must be lowercase alphanumeric with hyphens",
    ),
    "a pool without a name": (
        cluster_body(workerPools={"": pool()}),
        POOLS,
        "invalid pool name '': must be lowercase alphanumeric with hyphens",
    ),
    "a pool with a line break": (
        cluster_body(workerPools={"a\nb": pool()}),
        POOLS,
        "invalid pool name: must be lowercase alphanumeric with hyphens",
    ),
    "names too long together": (
        cluster_body("c" * 50, workerPools={"p" * 8: pool(), "ok": pool()}),
        "",
        "pool name pppppppp is too long: <cluster>-pool-<pool> must have at most 63 characters",
    ),
    "a name too long for workers": (
        cluster_body("c" * 51, workers=1),
        "",
        "metadata.name is too long for 'workers': <name>-pool-default must have at most 63 characters",
    ),
    "a cluster name with dots": (
        cluster_body("a.b"),
        "",
        "metadata.name must be lowercase alphanumeric with hyphens and at most 58 characters: namespace capi-<name> is "
        "named after it",
    ),
    "a cluster name too long for a namespace": (
        cluster_body("c" * 59),
        "",
        "metadata.name must be lowercase alphanumeric with hyphens and at most 58 characters: namespace capi-<name> is "
        "named after it",
    ),
    "min above max": (gpu(min=3, max=2), POOL, "min must not be greater than max"),
    "half an autoscaler": (
        cluster_body(workerPools={"a": pool(min=1)}, autoscaling="ClusterAutoscaler"),
        "spec",
        "with autoscaling ClusterAutoscaler a pool has both min and max, or neither",
    ),
    "a taint twice": (
        gpu(taints=[taint("a=b:NoSchedule"), taint("a=c:NoSchedule")]),
        f"{POOL}.taints[1]",
        'Duplicate value: {"effect":"NoSchedule","key":"a"}',
    ),
    "an unknown effect": (
        gpu(taints=[taint("a:Sometimes")]),
        f"{POOLS}.gpu.taints[0].effect",
        'Unsupported value: "Sometimes": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ),
    "a taint without effect": (gpu(taints=[{"key": "a"}]), f"{POOLS}.gpu.taints[0].effect", "Required value"),
    "a taint key": (gpu(taints=[taint("a b:NoSchedule")]), f"{POOL}.taints[0].key", KEY),
    "a taint value": (gpu(taints=[taint("a=-:NoSchedule")]), f"{POOL}.taints[0].value", VALUE),
    "a label key": (gpu(labels={"a b": "c"}), f"{POOL}.labels", f"'a b' is no label key: {KEY}"),
    "a label prefix": (gpu(labels={"A.b/c": "d"}), f"{POOL}.labels", f"'A.b/c' is no label key: {KEY}"),
    "a label value": (gpu(labels={"a": "b!"}), f"{POOL}.labels", VALUE),
    "labels that are too long together": (
        gpu(labels={f"k{number:02}": "v" * 55 for number in range(17)}),
        POOLS,
        "the labels of a pool are too long: the kubelet gets them as one argument, key=value,... with the label of the "
        "pool itself, and at most 1024 characters fit",
    ),
    "a class name": (
        gpu(nodeClass="Big_One"),
        f"{POOL}.nodeClass",
        "the name of a LatticeNodeClass is lower case letters, digits, '-' and '.'",
    ),
    "no replicas": (cluster_body(workerPools={"gpu": {}}), f"{POOLS}.gpu.replicas", "Required value"),
    "negative replicas": (
        gpu(replicas=-1),
        f"{POOLS}.gpu.replicas",
        "gpu.replicas in body should be greater than or equal to 0",
    ),
    "negative workers": (
        cluster_body(workers=-1),
        "spec.nodes.workers",
        "spec.nodes.workers in body should be greater than or equal to 0",
    ),
    "no nodes": (without(cluster_body(), "spec", "nodes"), "spec.nodes", "Required value"),
    "no control plane count": (
        without(cluster_body(), "spec", "nodes", "controlPlane"),
        "spec.nodes.controlPlane",
        "Required value",
    ),
    "no provider": (without(cluster_body(), "spec", "provider"), "spec.provider", "Required value"),
    "no version": (
        without(cluster_body(), "spec", "provider", "kubernetes", "version"),
        "spec.provider.kubernetes.version",
        "Required value",
    ),
    "a policy": (
        cluster_body(poolDeletionPolicy="Keep"),
        "spec.poolDeletionPolicy",
        'Unsupported value: "Keep": supported values: "Drain", "Orphan", "Force"',
    ),
    "a timeout": (
        cluster_body(poolDrainTimeout=-1),
        "spec.poolDrainTimeout",
        "spec.poolDrainTimeout in body should be greater than or equal to 0",
    ),
    "a pivot": (
        cluster_body(pivot="Later"),
        "spec.pivot",
        'Unsupported value: "Later": supported values: "Self", "Never"',
    ),
    "an autoscaler": (
        cluster_body(autoscaling="Karpenter"),
        "spec.autoscaling",
        'Unsupported value: "Karpenter": supported values: "None", "ClusterAutoscaler"',
    ),
    "openstack": (
        cluster_body(config={"openstack": {"cloud": "x"}}),
        "spec.provider.config",
        "openstack is not supported: use one of aws, docker and proxmox",
    ),
    "no provider configuration": (
        cluster_body(config={}),
        "spec.provider.config",
        "exactly one of aws, docker and proxmox must be set",
    ),
    "two providers": (
        cluster_body(config={**AWS, **DOCKER}),
        "spec.provider.config",
        "exactly one of aws, docker and proxmox must be set",
    ),
    "rke2": (
        kubernetes(bootstrap="rke2"),
        "spec.provider.kubernetes.bootstrap",
        "bootstrap 'rke2' is not supported: only kubeadm is",
    ),
    "half a version": (
        cluster_body(version="1.32"),
        "spec.provider.kubernetes.version",
        "version '1.32' must be a full version such as 1.32.0 or v1.32.0",
    ),
    "two vs": (
        cluster_body(version="vv1.32.0"),
        "spec.provider.kubernetes.version",
        "version 'vv1.32.0' must be a full version such as 1.32.0 or v1.32.0",
    ),
    "a network": (
        cluster_body(networking={"podCIDRs": ["10.0.0.0"]}),
        "spec.networking.podCIDRs[0]",
        "'10.0.0.0' is not a CIDR",
    ),
    "networks that overlap": (
        cluster_body(networking={"podCIDRs": ["10.0.0.0/8"], "serviceCIDRs": ["10.96.0.0/12"]}),
        "spec.networking",
        "podCIDRs and serviceCIDRs must not overlap",
    ),
    "aws without a region": (
        cluster_body(config={"aws": {}}),
        "spec.provider.config.aws.region",
        "Required value",
    ),
    "a small root volume": (
        cluster_body(config={"aws": {"region": "a", "cpRootVolumeSize": 7}}),
        "spec.provider.config.aws.cpRootVolumeSize",
        "spec.provider.config.aws.cpRootVolumeSize in body should be greater than or equal to 8",
    ),
    "an image id": (
        cluster_body(config={"aws": {"region": "a", "amiId": "ubuntu"}}),
        "spec.provider.config.aws.amiId",
        "must start with 'ami-'",
    ),
    "proxmox without a gateway": (
        without(cluster_body(config=PROXMOX), "spec", "provider", "config", "proxmox", "ipv4Gateway"),
        "spec.provider.config.proxmox.ipv4Gateway",
        "Required value",
    ),
    "a gateway": (
        proxmox(ipv4Gateway="router"),
        "spec.provider.config.proxmox.ipv4Gateway",
        "'router' is not an IPv4 address",
    ),
    "a name server": (
        proxmox(dnsServers=["dns"]),
        "spec.provider.config.proxmox.dnsServers[0]",
        "'dns' is not an IP address",
    ),
    "a prefix": (
        proxmox(ipv4Prefix=33),
        "spec.provider.config.proxmox.ipv4Prefix",
        "spec.provider.config.proxmox.ipv4Prefix in body should be less than or equal to 32",
    ),
    "an odd amount of memory": (
        proxmox(cpMemoryMib=1001),
        "spec.provider.config.proxmox.cpMemoryMib",
        "spec.provider.config.proxmox.cpMemoryMib in body should be a multiple of 8",
    ),
    "a small disk": (
        proxmox(workerDiskSizeGb=4),
        "spec.provider.config.proxmox.workerDiskSizeGb",
        "spec.provider.config.proxmox.workerDiskSizeGb in body should be greater than or equal to 5",
    ),
    "a secret without a name": (
        cluster_body(provider={"credentialsSecretRef": {"namespace": "a"}}),
        "spec.provider.credentialsSecretRef.name",
        "Required value",
    ),
}


@pytest.mark.parametrize(("body", "field", "message"), BAD_CLUSTERS.values(), ids=BAD_CLUSTERS)
def test_a_bad_cluster_is_refused_with_field_and_reason(http, body, field, message):
    refused(http.post(CLUSTERS, body, query=DRY), field, message)


def test_an_unknown_field_is_refused(http):
    answer = http.post(CLUSTERS, gpu(replicaz=3), query=DRY)

    assert answer.status == 400
    assert f'unknown field "{POOLS}.gpu.replicaz"' in answer.message
