"""MachineDeployment of a pool, and how its labels reach nodes."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.generation import (
    bootstrap_template,
    control_plane,
    kubelet_labels,
    machine_deployment,
    machine_labels,
)
from nodeyard.capabilities.pools.types import LatticeNodeClass, resolved_pools
from nodeyard.kube.json import Object

from ....builders import pools as build
from ....golden.pools.clusters import GOLDEN

SYNCED = {"node-role.kubernetes.io/db": "", "x.node-restriction.kubernetes.io/a": "1", "node.cluster.x-k8s.io/b": "2"}
JOINED = {"workload-type": "db", "node.kubernetes.io/kind": "ssd", "topology.kubernetes.io/zone": "a"}
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io"


def deployment(
    pool: Object | None = None,
    *,
    cluster: Object | None = None,
    node_class: LatticeNodeClass | None = None,
    **given: Any,
) -> Object:
    lc = build.cluster("prod", workerPools={"p": pool or build.pool(3)}, **(cluster or {}))
    [(pool_id, made)] = resolved_pools(lc.spec.nodes).items()
    settings: Object = {"name": "prod-pool-p", "version": "v1.32.0", "replicas": None, **given}
    return machine_deployment(
        lc,
        pool_id,
        made,
        bootstrap="b",
        infrastructure_kind="DevMachineTemplate",
        infrastructure="i",
        node_class=node_class,
        **settings,
    )


def annotations(
    pool: Object, node_class: LatticeNodeClass | None = None, autoscaling: str = "ClusterAutoscaler"
) -> Any:
    made = deployment(pool, cluster={"autoscaling": autoscaling}, node_class=node_class)
    return made["metadata"].get("annotations")


def test_replicas_are_applied_only_if_given_and_never_for_a_pool() -> None:
    assert "replicas" not in deployment()["spec"]
    assert deployment(replicas=0)["spec"]["replicas"] == 0


def test_machines_match_the_selector_also_of_an_adopted_deployment() -> None:
    for made in (
        deployment(),
        deployment(name="prod-md-0", selector={"matchLabels": {"workers": "all"}}),
        deployment(build.pool(1, labels={"workers": "mine"}), selector={"matchLabels": {"workers": "all"}}),
    ):
        labels = made["spec"]["template"]["metadata"]["labels"]
        assert labels.items() >= made["spec"]["selector"]["matchLabels"].items()
        assert labels[names.DEPLOYMENT_NAME_LABEL] == made["metadata"]["name"]


def test_an_adopted_selector_is_kept_as_it_is() -> None:
    selector = {"matchExpressions": [{"key": "workers", "operator": "Exists"}]}
    assert deployment(selector=selector)["spec"]["selector"] == selector


def test_drains_of_single_machines_have_the_same_limit() -> None:
    made = deployment(cluster={"poolDrainTimeout": 0})
    assert made["spec"]["template"]["spec"]["deletion"] == {
        "nodeDrainTimeoutSeconds": 0,
        "nodeVolumeDetachTimeoutSeconds": 0,
    }
    assert deployment()["spec"]["template"]["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 300


@pytest.mark.parametrize("version", ["1.32.0", "v1.32.0", "vv1.32.0"])
def test_a_version_has_exactly_one_v(version: str) -> None:
    assert deployment(version=version)["spec"]["template"]["spec"]["version"] == "v1.32.0"
    assert control_plane(build.cluster(), "t", "DevMachineTemplate", version)["spec"]["version"] == "v1.32.0"


def test_every_label_reaches_the_node_on_one_way() -> None:
    lc = build.cluster("prod", workerPools={"p": build.pool(1, labels={**SYNCED, **JOINED})})
    pool = resolved_pools(lc.spec.nodes)["p"]
    assert kubelet_labels("p", pool) == {**JOINED, names.POOL: "p"}
    assert machine_labels(lc, "p", pool).items() >= {**SYNCED, **JOINED, names.POOL: "p"}.items()


def test_a_pool_cannot_pass_for_another_by_its_labels() -> None:
    stolen = {names.POOL: "q", names.CLUSTER: "other", names.CLUSTER_NAME_LABEL: "other"}
    lc = build.cluster("prod", workerPools={"p": build.pool(1, labels=stolen)})
    pool = resolved_pools(lc.spec.nodes)["p"]
    assert kubelet_labels("p", pool)[names.POOL] == "p"
    assert machine_labels(lc, "p", pool) == {
        names.CLUSTER_NAME_LABEL: "prod",
        names.CLUSTER: "prod",
        names.POOL: "p",
    }


def test_an_empty_taint_value_is_left_out() -> None:
    lc = build.cluster("prod", workerPools={"p": build.pool(1, taints=["a:NoSchedule", "a=x:NoExecute"])})
    made = bootstrap_template(lc, "p", resolved_pools(lc.spec.nodes)["p"])
    assert made.spec["template"]["spec"]["joinConfiguration"]["nodeRegistration"]["taints"] == [
        {"key": "a", "value": "x", "effect": "NoExecute"},
        {"key": "a", "effect": "NoSchedule"},
    ]


def test_bounds_are_annotated_only_for_the_cluster_autoscaler_and_only_both() -> None:
    bounded = build.pool(3, min=0, max=9)
    assert annotations(bounded, autoscaling="None") is None
    assert annotations(build.pool(3, max=9)) is None
    assert annotations(build.pool(3)) is None
    made = annotations(bounded)
    assert (made[names.AUTOSCALER_MIN], made[names.AUTOSCALER_MAX]) == ("0", "9")


def test_the_autoscaler_learns_what_a_node_would_be_like() -> None:
    sized = GOLDEN["autoscaled"].classes["sized"]
    made = annotations(
        build.pool(0, min=0, max=9, labels={**SYNCED, "tier": "x"}, taints=["b:NoSchedule", "a=1:NoExecute"]), sized
    )
    assert made[f"{CAPACITY}/cpu"] == "8"
    assert made[f"{CAPACITY}/memory"] == "32Gi"
    assert made[f"{CAPACITY}/ephemeral-disk"] == "200Gi"
    assert made[f"{CAPACITY}/taints"] == "a=1:NoExecute,b=:NoSchedule"
    assert set(made[f"{CAPACITY}/labels"].split(",")) == {
        "lattice.dev/pool=p",
        "node-role.kubernetes.io/db=",
        "node.cluster.x-k8s.io/b=2",
        "tier=x",
        "x.node-restriction.kubernetes.io/a=1",
    }


def test_no_capacity_is_guessed_for_a_class_without_size() -> None:
    made = annotations(build.pool(0, min=0, max=9), build.node_class("c"))
    of_class = {names.NODE_CLASS, names.CLASS_INPUTS}
    assert set(made) - of_class == {names.AUTOSCALER_MIN, names.AUTOSCALER_MAX, f"{CAPACITY}/labels"}
