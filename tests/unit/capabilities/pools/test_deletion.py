"""Deletion of a LatticeCluster: first its Cluster, then the namespace, then the finalizer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.deletion import delete_cluster
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import Management, PoolsSnapshot, Workload
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Namespace
from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Disruption, Plan, Verb

from ....builders.pool_removal import OWN, cluster_object, deployment, member
from ....builders.pools import NOW, cluster, machine

GOING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
ELSEWHERE = Workload(uid="theirs", cluster="prod")


def namespace(**metadata: Any) -> Namespace:
    found = {"name": "capi-prod", "uid": "uid-namespace", "labels": {names.CLUSTER: "prod"}, **metadata}
    return msgspec.convert({"metadata": found}, Namespace)


def deleted(
    management: Management | None = None,
    workload: Workload = ELSEWHERE,
    metadata: Object | None = None,
    **spec: Any,
) -> PoolsSnapshot:
    """A LatticeCluster that was deleted, with two workers."""
    standing = Management(
        namespace=namespace(),
        cluster=cluster_object(),
        deployments={"prod-pool-gpu": deployment("gpu")},
        machines=[member("gpu", 0), member("gpu", 1)],
    )
    lc = cluster("prod", metadata={**GOING, **(metadata or {})}, **spec)
    return PoolsSnapshot(cluster=lc, management=management or standing, workload=workload)


def plan(snapshot: PoolsSnapshot) -> tuple[PlanBuilder, str | None]:
    """Plan the deletion; return the builder and the reason why it is blocked."""
    builder = PlanBuilder(NOW)
    delete_cluster(builder, snapshot)
    return builder, builder.blocked[-1].reason if builder.blocked else None


# step by step


def test_the_cluster_goes_first() -> None:
    builder, reason = plan(deleted())
    [action] = builder.actions
    assert (action.verb, action.object.kind, action.object.uid) == (Verb.DELETE, "Cluster", "uid-cluster")
    assert builder.writes[action.id].propagation == "Background"
    assert reason is Reason.CLUSTER_DELETING


def test_remaining_objects_are_counted_while_the_cluster_is_deleted() -> None:
    going = Management(
        namespace=namespace(),
        cluster=cluster_object(metadata=GOING),
        deployments={"prod-pool-gpu": deployment("gpu")},
        machines=[member("gpu", 1)],
    )
    builder, reason = plan(deleted(going))
    assert not builder.actions
    assert reason is Reason.CLUSTER_DELETING
    [blocked] = builder.blocked
    assert (blocked.facts.machines, blocked.facts.deployments) == (1, 1)


def test_the_namespace_follows_when_the_cluster_is_gone() -> None:
    builder, reason = plan(deleted(Management(namespace=namespace())))
    [action] = builder.actions
    assert (action.verb, action.object.kind, action.object.uid) == (Verb.DELETE, "Namespace", "uid-namespace")
    assert action.disruption is Disruption.NONE
    assert reason is Reason.NAMESPACE_DELETING


def test_a_namespace_that_goes_is_waited_for() -> None:
    builder, reason = plan(deleted(Management(namespace=namespace(**GOING))))
    assert not builder.actions
    assert reason is Reason.NAMESPACE_DELETING
    assert builder.blocked[0].facts.namespace == "capi-prod"


def test_the_finalizer_is_removed_last_and_foreign_ones_stay() -> None:
    snapshot = deleted(Management(), metadata={"finalizers": ["theirs", names.FINALIZER]})
    builder, reason = plan(snapshot)
    [action] = builder.actions
    write = builder.writes[action.id]
    assert (action.object.kind, write.body) == (names.CLUSTER_KIND, {"metadata": {"finalizers": ["theirs"]}})
    assert write.resource_version == "1"
    assert reason is None


def test_without_our_finalizer_there_is_nothing_to_do() -> None:
    builder, reason = plan(deleted(metadata={"finalizers": ["theirs"]}))
    assert (builder.actions, builder.blocked, reason) == ([], [], None)


def test_a_cluster_that_is_not_deleted_is_left_alone() -> None:
    standing = deleted()
    builder, reason = plan(PoolsSnapshot(cluster=cluster("prod"), management=standing.management, workload=ELSEWHERE))
    assert (builder.actions, reason) == ([], None)


def test_a_cluster_whose_control_plane_never_ran_is_deleted_though_it_cannot_be_reached() -> None:
    management = Management(namespace=namespace(), cluster=cluster_object(is_initialized=False))
    builder, _ = plan(deleted(management, Workload()))
    assert [action.object.kind for action in builder.actions] == ["Cluster"]


# the brake


def test_the_deletion_counts_every_node_of_the_cluster() -> None:
    builder, _ = plan(deleted())
    [action] = builder.actions
    assert (action.disruption, action.disrupts) == (Disruption.DELETES, ("prod:gpu-0", "prod:gpu-1"))
    held = brake(Plan(capability="pools", key="k", actions=(action,)), Limit(nodes=1, percent=10), 2).held
    assert held is not None


def test_the_approval_is_kept_while_machines_are_added_and_removed() -> None:
    ids = set()
    for machines in ([member("gpu", 0), member("gpu", 1)], [member("gpu", 1), member("gpu", 2)]):
        management = Management(namespace=namespace(), cluster=cluster_object(), machines=machines)
        plan_ = Plan(capability="pools", key="k", actions=tuple(plan(deleted(management))[0].actions))
        held = brake(plan_, Limit(nodes=0, percent=0), 2).held
        assert held is not None
        ids.add(held.id)
    assert len(ids) == 1


def test_machines_that_outlive_their_cluster_are_deleted_with_the_namespace_without_another_approval() -> None:
    builder, _ = plan(deleted(Management(namespace=namespace(), machines=[member("gpu", 0)])))
    [action] = builder.actions
    assert (action.disruption, action.already_approved) == (Disruption.DELETES, True)


# what is not deleted


def test_a_cluster_that_manages_itself_cannot_tear_itself_down() -> None:
    builder, reason = plan(deleted(workload=OWN))
    assert not builder.actions
    assert reason is Reason.SELF_MANAGED


def test_one_that_manages_itself_is_refused_though_the_spec_says_never() -> None:
    _, reason = plan(deleted(workload=OWN, pivot="Never"))
    assert reason is Reason.SELF_MANAGED


def test_one_that_was_moved_out_goes() -> None:
    builder, reason = plan(deleted(Management(namespace=namespace()), workload=OWN))
    assert [action.object.kind for action in builder.actions] == ["Namespace"]
    assert reason is Reason.NAMESPACE_DELETING


def test_a_cluster_of_unknown_identity_is_treated_as_our_own() -> None:
    builder, reason = plan(deleted(workload=Workload(error="timed out")))
    assert not builder.actions
    assert reason is Reason.IDENTITY_UNKNOWN
    assert builder.blocked[0].facts.error == "timed out"


def test_one_that_never_pivots_need_not_be_asked() -> None:
    builder, _ = plan(deleted(workload=Workload(error="timed out"), pivot="Never"))
    assert [action.object.kind for action in builder.actions] == ["Cluster"]


@pytest.mark.parametrize("workload", [OWN, ELSEWHERE, Workload()], ids=["own", "elsewhere", "unknown"])
def test_an_orphaned_object_loses_only_its_finalizer(workload: Workload) -> None:
    builder, reason = plan(deleted(workload=workload, metadata={"annotations": {names.ORPHAN_ON_DELETE: "true"}}))
    [action] = builder.actions
    assert (action.verb, action.object.kind, action.disruption) == (Verb.PATCH, names.CLUSTER_KIND, Disruption.NONE)
    assert reason is None


@pytest.mark.parametrize("value", ["false", "", "True"])
def test_only_the_value_true_orphans(value: str) -> None:
    _, reason = plan(deleted(workload=OWN, metadata={"annotations": {names.ORPHAN_ON_DELETE: value}}))
    assert reason is Reason.SELF_MANAGED


@pytest.mark.parametrize(
    "paused",
    [
        pytest.param({**cluster_object(), "spec": {"paused": True}}, id="by-its-spec"),
        pytest.param(cluster_object(metadata={"annotations": {names.PAUSED_ANNOTATION: "true"}}), id="by-annotation"),
    ],
)
@pytest.mark.parametrize("annotations", [{}, {names.ORPHAN_ON_DELETE: "true"}], ids=["", "orphaned"])
def test_while_the_cluster_is_paused_nothing_is_written(paused: Object, annotations: dict[str, str]) -> None:
    management = Management(namespace=namespace(), cluster=paused)
    builder, reason = plan(deleted(management, metadata={"annotations": annotations}))
    assert not builder.actions
    assert reason is Reason.CLUSTER_PAUSED


def test_a_cluster_that_we_did_not_make_is_not_deleted() -> None:
    management = Management(namespace=namespace(), cluster=cluster_object(metadata={"labels": {}}))
    builder, reason = plan(deleted(management))
    assert not builder.actions
    assert reason is Reason.FOREIGN
    assert builder.blocked[0].facts.name == "Cluster capi-prod/prod"


@pytest.mark.parametrize("labels", [{}, {names.CLUSTER: "another"}], ids=["of-nobody", "of-another"])
def test_a_foreign_namespace_stays(labels: dict[str, str]) -> None:
    builder, reason = plan(deleted(Management(namespace=namespace(labels=labels))))
    assert [action.reason for action in builder.actions] == [Reason.FINALIZER_REMOVED]
    assert reason is None


def test_a_namespace_with_a_machine_deployment_of_another_cluster_stays() -> None:
    foreign = deployment("theirs", spec={"clusterName": "another"})
    management = Management(namespace=namespace(), deployments={foreign["metadata"]["name"]: foreign})
    builder, reason = plan(deleted(management))
    [action] = builder.actions
    assert (action.reason, action.facts.kept) == (Reason.FINALIZER_REMOVED, ("prod-pool-theirs",))
    assert reason is None


@pytest.mark.parametrize(
    ("theirs", "kept"),
    [
        ({"other_clusters": ["another"]}, "another"),
        ({"machines": [machine("a-0", "", spec={"clusterName": "another"})]}, "a-0"),
    ],
    ids=["cluster", "machine"],
)
def test_a_namespace_with_anything_of_another_cluster_stays(theirs: Any, kept: str) -> None:
    builder, reason = plan(deleted(Management(namespace=namespace(), **theirs)))
    [action] = builder.actions
    assert (action.reason, action.facts.kept) == (Reason.FINALIZER_REMOVED, (kept,))
    assert reason is None


def test_machines_of_another_cluster_are_not_counted() -> None:
    theirs = machine("a", "b", node="a-0", spec={"clusterName": "another"})
    foreign = deployment("theirs", spec={"clusterName": "another"})
    management = Management(
        namespace=namespace(),
        cluster=cluster_object(),
        deployments={foreign["metadata"]["name"]: foreign},
        machines=[member("gpu", 0), theirs],
    )
    builder, _ = plan(deleted(management))
    assert builder.actions[0].disrupts == ("prod:gpu-0",)
    assert builder.blocked[0].facts.deployments == 0
