"""Admission of LatticeClusters and LatticeNodeClasses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.builders.pool_objects import running
from tests.builders.pool_views import PoolsView
from tests.builders.pools import SEED_POOLS, class_body, cluster, cluster_body, node_class, pool

from nodeyard.capabilities.pools.snapshot import Workload
from nodeyard.capabilities.pools.webhook import WEBHOOKS, review_class, review_cluster
from nodeyard.kube.json import Object
from nodeyard.runtime.webhooks import AdmissionRequest

CLASSES = tuple(
    node_class(name, docker={"image": f"{name}:v1"}) for name in ("medium", "gpu-large", "memory-optimized")
)
EMPTY = PoolsView()
BAD_LABEL = {"foo.k8s.io/a": "b"}
BAD_TAINT = "node.kubernetes.io/mine:NoSchedule"


def review(operation: Any, new: Object | None = None, old: Object | None = None) -> AdmissionRequest:
    name = (new or old or {})["metadata"]["name"]
    return AdmissionRequest(uid="u", operation=operation, name=name, object=new, old_object=old)


def created(body: Object, view: PoolsView = EMPTY):
    return review_cluster(review("CREATE", body), view)


def updated(old: Object, new: Object, view: PoolsView = EMPTY):
    return review_cluster(review("UPDATE", new, old), view)


def deleted(body: Object, view: PoolsView):
    return review_cluster(review("DELETE", None, body), view)


def seed(**given: Any) -> Object:
    return cluster_body("prod", **{"workerPools": SEED_POOLS, **given})


def world(is_pivoted: bool = True, **given: Any):
    return running(cluster("prod", **{"workerPools": SEED_POOLS, **given}), *CLASSES, is_pivoted=is_pivoted)


def pools(**changes: Any) -> Object:
    """The pools of the design with these changes; None removes a pool."""
    changed = {**SEED_POOLS, **{id: {**SEED_POOLS.get(id, {}), **(pool or {})} for id, pool in changes.items()}}
    return {id: each for id, each in changed.items() if changes.get(id, {}) is not None}


# keys


def test_the_cluster_of_the_design_passes_without_a_warning():
    response = created(seed())

    assert (response.is_allowed, response.warnings) == (True, ())


def test_a_key_that_would_keep_nodes_out_is_denied_with_field_value_and_remedy():
    response = created(cluster_body(workerPools={"gpu": pool(labels=BAD_LABEL, taints=[BAD_TAINT])}))

    assert (response.is_allowed, response.code, response.reason) == (False, 422, "Invalid")
    first, second = response.message.split("; ")
    assert first.startswith('spec.nodes.workerPools[gpu].labels: Invalid value: "foo.k8s.io/a": the kubelet does not')
    assert "or your own domain" in first
    assert second.startswith(
        'spec.nodes.workerPools[gpu].taints[0].key: Invalid value: "node.kubernetes.io/mine": Kubernetes sets'
    )


def test_an_update_that_leaves_bad_keys_as_they_were_passes_with_a_warning():
    old = cluster_body(workerPools={"gpu": pool(1, labels=BAD_LABEL, taints=["a:NoExecute", BAD_TAINT])})
    new = cluster_body(workerPools={"gpu": pool(5, labels={**BAD_LABEL, "fine": "x"}, taints=[BAD_TAINT])})

    response = updated(old, new)

    assert response.is_allowed
    assert [warning.rpartition("; ")[2] for warning in response.warnings] == [
        "accepted because the stored object already has it"
    ] * 2


@pytest.mark.parametrize(
    "pools",
    [
        {"gpu": pool(labels={**BAD_LABEL, "kubernetes.io/role": "x"})},
        {"gpu": pool(labels=BAD_LABEL), "cpu": pool(labels=BAD_LABEL)},
        {"cpu": pool(labels=BAD_LABEL)},
    ],
    ids=["another key", "another pool too", "another pool"],
)
def test_an_update_that_brings_a_bad_key_is_denied(pools):
    response = updated(cluster_body(workerPools={"gpu": pool(labels=BAD_LABEL)}), cluster_body(workerPools=pools))

    assert not response.is_allowed


def test_a_bad_key_can_always_be_taken_out():
    response = updated(
        cluster_body(workerPools={"gpu": pool(labels=BAD_LABEL)}), cluster_body(workerPools={"gpu": pool()})
    )

    assert (response.is_allowed, response.warnings) == (True, ())


def test_updates_outside_the_spec_are_admitted_unchecked():
    bad = cluster_body(workerPools={"gpu": pool(labels=BAD_LABEL, min=1)})
    annotated = cluster_body(workerPools={"gpu": pool(labels=BAD_LABEL, min=1)}, metadata={"annotations": {"a": "b"}})

    assert updated(bad, annotated).warnings == ()


def test_a_cluster_that_is_going_is_never_held_up():
    going = cluster_body(
        workerPools={"gpu": pool(labels=BAD_LABEL)}, metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"}
    )

    assert updated(cluster_body(), going).is_allowed


def test_an_undecodable_cluster_is_left_to_the_plan():
    assert created({**cluster_body(), "spec": {"nodes": []}}).is_allowed


# warnings


def test_bounds_that_are_ignored_are_said_with_the_message_of_the_design():
    response = created(cluster_body(workerPools={"general": pool(5, min=3, max=10), "other": pool()}))

    assert response.warnings == ('pool="general": min/max autoscaling not implemented, using fixed replicas=5',)


def test_bounds_that_are_used_cause_no_warning():
    body = cluster_body(workerPools={"general": pool(5, min=3, max=10)}, autoscaling="ClusterAutoscaler")

    assert created(body).warnings == ()


def test_taking_out_all_pools_is_warned_of():
    assert updated(seed(), seed(workerPools={})).warnings == (
        "spec.nodes of prod has no pools: all its workers are removed",
    )


def test_the_policy_orphan_is_warned_of():
    said = (
        "poolDeletionPolicy Orphan still deletes the Machines of {}: Cluster API cannot keep them. Their pods are "
        "rescheduled"
    )
    orphaning = seed(poolDeletionPolicy="Orphan")

    assert created(orphaning).warnings == (said.format("a removed pool"),)
    assert updated(orphaning, seed(poolDeletionPolicy="Orphan", workerPools=pools(gpu=None))).warnings == (
        said.format("pool gpu"),
    )
    assert updated(orphaning, seed(poolDeletionPolicy="Orphan", workerPools=pools(gpu={"replicas": 9}))).warnings == ()


def test_a_change_that_replaces_nodes_says_how_many_and_why():
    new = seed(workerPools=pools(gpu={"labels": {"workload-type": "training"}}))

    response = updated(seed(), new, PoolsView(world()))

    assert response.is_allowed
    assert response.warnings == (
        "Starts a rollout of pool gpu (GPU Workers (A100)) that replaces 2 nodes, one at a time: labels or taints that "
        "are set when a node joins changed",
    )


def test_another_class_replaces_nodes():
    view = PoolsView(world())
    new = seed(workerPools=pools(general={"nodeClass": "gpu-large"}))

    (warning,) = updated(seed(), new, view).warnings

    assert warning.startswith(
        "Starts a rollout of pool general (General Purpose) that replaces 3 nodes, one at a time: the machine"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"displayName": "Other"},
        {"replicas": 7},
        {"labels": {**SEED_POOLS["gpu"]["labels"], "node.cluster.x-k8s.io/tier": "a"}},
    ],
    ids=["its name for people", "its number", "a label that Cluster API brings"],
)
def test_a_change_in_place_causes_no_warning(change):
    assert updated(seed(), seed(workerPools=pools(gpu=change)), PoolsView(world())).warnings == ()


def test_already_pending_replacements_are_not_warned_about_again():
    rolling = seed(workerPools=pools(gpu={"labels": {"workload-type": "training"}}))
    view = PoolsView(replace(world(), cluster=cluster("prod", workerPools=rolling["spec"]["nodes"]["workerPools"])))
    new = seed(workerPools=pools(gpu={"labels": {"workload-type": "training"}, "replicas": 2, "displayName": "x"}))

    assert updated(rolling, new, view).warnings == ()


# deletion


def test_a_cluster_that_manages_itself_cannot_be_deleted():
    response = deleted(seed(), PoolsView(world(is_pivoted=True)))

    assert (response.is_allowed, response.code) == (False, 403)
    assert response.message == (
        "prod manages itself and cannot delete itself: move its Cluster API objects out with clusterctl, or annotate "
        'it with lattice.dev/orphan-on-delete: "true" to delete only the LatticeCluster'
    )


def test_a_cluster_that_may_be_the_one_we_run_on_cannot_be_deleted_either():
    unknown = replace(world(), workload=Workload(error="connection refused"))

    response = deleted(seed(), PoolsView(unknown))

    assert not response.is_allowed
    assert "it is unreachable (connection refused)" in response.message


def test_an_orphaned_cluster_may_be_deleted():
    body = seed(metadata={"annotations": {"lattice.dev/orphan-on-delete": "true"}})

    response = deleted(body, PoolsView(world(is_pivoted=True)))

    assert response.is_allowed
    assert response.warnings == ("only LatticeCluster prod is deleted: its machines and Cluster API objects stay",)


def test_a_remote_cluster_may_be_deleted_with_a_warning_about_its_objects():
    elsewhere = replace(world(), workload=Workload(uid="another"))

    response = deleted(seed(), PoolsView(elsewhere))

    assert (response.is_allowed, response.warnings) == (True, ("deleting prod deletes its 6 machines without a drain",))


def test_an_unknown_cluster_may_be_deleted():
    assert deleted(seed(), EMPTY).is_allowed


# classes


def test_deleting_a_class_in_use_passes_and_names_the_pools():
    body = class_body("medium")

    response = review_class(review("DELETE", None, body), PoolsView(world()))

    assert response.is_allowed
    assert response.warnings == (
        "LatticeNodeClass medium is used by 1 pool (prod/general): without it they keep their nodes and can be scaled, "
        "but no other change to them is applied",
    )


def test_deleting_an_unused_class_passes_without_a_warning():
    assert review_class(review("DELETE", None, class_body("unused")), PoolsView(world())).warnings == ()


def test_a_change_of_a_class_that_replaces_nodes_names_the_pools():
    old, new = class_body("medium", docker={"image": "a"}), class_body("medium", docker={"image": "b"})

    response = review_class(review("UPDATE", new, old), PoolsView(world()))

    assert response.is_allowed
    assert response.warnings == (
        "this change of LatticeNodeClass medium replaces the nodes of 1 pool (prod/general), one at a time in each",
    )


@pytest.mark.parametrize(
    "new",
    [{"docker": {"image": "a", "memory": "4Gi", "cpus": "2"}}, {"docker": {"image": "a"}, "aws": {"ami": "ami-1"}}],
    ids=["without effect", "of another provider"],
)
def test_a_change_of_a_class_that_concerns_no_machine_causes_no_warning(new):
    old = class_body("medium", docker={"image": "a"})

    assert review_class(review("UPDATE", class_body("medium", **new), old), PoolsView(world())).warnings == ()


def test_the_webhooks_fail_open():
    assert [(webhook.name, webhook.failure_policy, webhook.mutates) for webhook in WEBHOOKS] == [
        ("clusters", "Ignore", False),
        ("classes", "Ignore", False),
    ]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (
            "Drain",
            "Starts removing pool gpu: 2 nodes are cordoned and drained within their disruption budgets, then deleted "
            "(poolDeletionPolicy: Drain)",
        ),
        (
            "Force",
            "Sets drain options on 2 Machines of pool gpu, which are deleted without a drain (poolDeletionPolicy: "
            "Force)",
        ),
    ],
)
def test_removing_a_pool_warns_about_its_nodes(policy, said):
    old = seed(poolDeletionPolicy=policy)
    new = seed(workerPools=pools(gpu=None), poolDeletionPolicy=policy)

    response = updated(old, new, PoolsView(world(poolDeletionPolicy=policy)))

    assert (response.is_allowed, response.warnings) == (True, (said,))


def test_a_control_plane_that_is_scaled_down_is_warned_of():
    response = updated(seed(controlPlane=3), seed(controlPlane=1), PoolsView(world(controlPlane=3)))

    assert response.warnings == ("Scales the control plane of prod from 3 to 1, which deletes 2 control plane nodes",)
