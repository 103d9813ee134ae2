"""Plans of one LatticeCluster: creation, steady state, and changes of the spec."""

from dataclasses import replace

import msgspec
import pytest

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.blocks import AutoscalingIgnored, ClusterGone
from nodeyard.capabilities.pools.plan import plan
from nodeyard.capabilities.pools.snapshot import Served, TemplateMeta, Workload
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.model import Disruption

from ....builders.pool_objects import (
    BOTH_SERVED,
    SERVED,
    changed,
    legacy,
    moved,
    running,
    settled,
    stored,
    with_deployment,
    with_management,
    with_replicas,
)
from ....builders.pools import NOW, SEED_POOLS, cluster, machine, node_class, pool, snapshot

CLASSES = tuple(node_class(name) for name in ("medium", "gpu-large", "memory-optimized"))
SEED = cluster("prod", workerPools=SEED_POOLS)
BARE = cluster("c", workerPools={"a": pool(2, min=1, max=5)})


def of(world):
    return plan(world, NOW).plan


def done(world):
    return [(action.reason, action.object.name) for action in of(world).actions]


def blocked(world):
    return {each.reason: each.facts for each in of(world).blocked}


def action(world, reason):
    (found,) = [each for each in of(world).actions if each.reason == reason]
    return found


def write(world, reason):
    planned = plan(world, NOW)
    return planned.writes[action(world, reason).id]


# creation


def test_all_objects_are_created_at_once_with_pools_at_zero():
    planned = plan(snapshot(SEED, *CLASSES, served=SERVED), NOW)
    made = [each for each in planned.plan.actions if each.reason == "PoolCreated"]
    assert [each.object.name for each in made] == ["prod-pool-general", "prod-pool-gpu", "prod-pool-highmem"]
    assert {planned.writes[each.id].body["spec"]["replicas"] for each in made} == {0}


def test_a_pool_is_made_without_force_so_that_one_we_do_not_see_keeps_its_number():
    planned = plan(snapshot(SEED, *CLASSES, served=SERVED), NOW)
    assert not any(planned.writes[each.id].force for each in planned.plan.actions if each.reason == "PoolCreated")


def test_a_machine_deployment_is_made_after_both_its_templates():
    planned = of(snapshot(cluster("c", workers=1), served=SERVED))
    (made,) = [each for each in planned.actions if each.reason == "PoolCreated"]
    templates = {each.id for each in planned.actions if each.reason == "TemplateCreated" and "pool" in each.object.name}
    assert templates <= set(made.after)


def test_nothing_is_scaled_before_the_pivot():
    world = running(SEED, *CLASSES, is_pivoted=False)
    at_zero = {name: settled(with_replicas(each, 0)) for name, each in world.management.deployments.items()}
    world = with_management(world, deployments=at_zero)
    assert done(world) == []
    assert "NotPivoted" in blocked(world)


def test_a_live_pool_is_not_scaled_down_when_the_pivot_cannot_be_seen_any_more():
    world = replace(running(SEED, *CLASSES), workload=Workload(error="connection refused"))
    assert done(world) == []


def test_a_cluster_that_stays_here_is_scaled_when_its_control_plane_runs():
    lc = cluster("c", workers=2, pivot="Never")
    world = replace(running(lc), workload=Workload(uid="other", cluster="c"))
    assert done(world) == []
    fresh = with_deployment(world, settled(with_replicas(world.management.deployments["c-pool-default"], 0)))
    assert done(fresh) == [("PoolScaled", "c-pool-default")]


CLUSTERS_SERVED = Served({**SERVED.versions, "Cluster": ("v1beta2",)})


def test_which_cluster_has_come_up_is_noted_once():
    lc = cluster("c", workers=1)
    world = running(cluster("c", workers=1, metadata={"annotations": {names.CLUSTER_UID: "another"}}))
    assert done(world) == [("ClusterAnnotated", "c")]
    assert write(world, "ClusterAnnotated").body == {"metadata": {"annotations": {names.CLUSTER_UID: "uid-c"}}}
    assert done(replace(world, cluster=lc)) == []


def test_nothing_is_recorded_before_the_cluster_is_initialized():
    bare = msgspec.structs.replace(SEED.metadata, annotations={})
    world = running(msgspec.structs.replace(SEED, metadata=bare), *CLASSES)
    coming = {**world.management.cluster, "status": {}}
    assert "ClusterAnnotated" not in dict(done(with_management(world, cluster=coming)))


def test_a_cluster_that_was_moved_away_is_not_created_again():
    world = snapshot(SEED, *CLASSES, served=CLUSTERS_SERVED)
    assert done(world) == []
    assert blocked(world) == {"ClusterGone": ClusterGone(cluster="prod")}


def test_it_is_recreated_when_the_annotation_is_removed():
    bare = msgspec.structs.replace(SEED.metadata, annotations={})
    world = snapshot(msgspec.structs.replace(SEED, metadata=bare), *CLASSES, served=CLUSTERS_SERVED)
    assert ("ClusterApplied", "prod") in done(world)


def test_a_provider_that_is_not_installed_is_named():
    world = snapshot(cluster("c", workers=1), served=Served({}))
    assert done(world) == []
    assert "CAPD" in blocked(world)["ProviderNotServed"].error


# steady state


def test_a_cluster_that_is_as_it_should_be_needs_nothing():
    world = running(SEED, *CLASSES)
    assert of(world).actions == ()
    assert of(world).blocked == ()


def test_a_display_name_touches_nothing():
    pools = {**SEED_POOLS, "gpu": {**SEED_POOLS["gpu"], "displayName": "Other"}}
    world = replace(running(SEED, *CLASSES), cluster=cluster("prod", workerPools=pools))
    assert done(world) == []


def test_another_number_scales_that_pool_alone():
    pools = {**SEED_POOLS, "gpu": {**SEED_POOLS["gpu"], "replicas": 5}}
    world = replace(running(SEED, *CLASSES), cluster=cluster("prod", workerPools=pools))
    assert done(world) == [("PoolScaled", "prod-pool-gpu")]
    scaled = write(world, "PoolScaled")
    assert (scaled.body, scaled.field_manager) == ({"spec": {"replicas": 5}}, names.REPLICAS_MANAGER)


def test_scaling_down_reports_the_number_of_removed_nodes():
    pools = {**SEED_POOLS, "general": {**SEED_POOLS["general"], "replicas": 1}}
    world = replace(running(SEED, *CLASSES), cluster=cluster("prod", workerPools=pools))
    assert action(world, "PoolScaled").disruption is Disruption.DELETES
    assert len(action(world, "PoolScaled").disrupts) == 2


def test_a_label_that_cluster_api_syncs_changes_in_place():
    lc = cluster("c", workerPools={"a": pool(2)})
    labelled = cluster("c", workerPools={"a": pool(2, labels={"node.cluster.x-k8s.io/tier": "gold"})})
    world = replace(running(lc), cluster=labelled)
    assert done(world) == [("PoolUpdated", "c-pool-a")]
    assert action(world, "PoolUpdated").disruption is Disruption.NONE


def brought(world):
    """Return the snapshot after `clusterctl move` to another server."""
    live = world.management
    return with_management(
        world,
        cluster=moved(live.cluster),
        infrastructure=moved(live.infrastructure),
        control_plane=moved(live.control_plane),
        deployments={name: moved(each) for name, each in live.deployments.items()},
    )


def taken_over(world):
    """Return the snapshot after field ownership was taken over."""
    planned = plan(world, NOW)
    for each in planned.plan.actions:
        assert (each.reason, each.diff, each.disruption) == ("FieldsTakenOver", (), Disruption.NONE)
        fields = planned.writes[each.id].body["metadata"]["managedFields"]
        kind = {"Cluster": "cluster", "DevCluster": "infrastructure", "KubeadmControlPlane": "control_plane"}
        if each.object.kind == "MachineDeployment":
            deployment = world.management.deployments[each.object.name]
            world = with_deployment(world, changed(deployment, "metadata.managedFields", fields))
        else:
            live = getattr(world.management, kind[each.object.kind])
            given = {kind[each.object.kind]: changed(live, "metadata.managedFields", fields)}
            world = with_management(world, **given)
    return world


def test_moved_objects_are_taken_over_so_that_dropped_fields_are_removed():
    bounds = {"min": 1, "max": 5}
    labelled = pool(2, labels={"node-role.kubernetes.io/gpu": "true"}, **bounds)
    lc = cluster("c", autoscaling="ClusterAutoscaler", workerPools={"a": labelled})
    world = brought(running(lc))

    assert done(world) == [
        ("FieldsTakenOver", "c"),
        ("FieldsTakenOver", "c-control-plane"),
        ("FieldsTakenOver", "c"),
        ("FieldsTakenOver", "c-pool-a"),
    ]
    world = taken_over(world)
    assert done(world) == []
    changed_paths = [each.path for each in action(replace(world, cluster=BARE), "PoolUpdated").diff]
    assert "metadata.annotations[cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size]" in changed_paths
    assert "spec.template.metadata.labels[node-role.kubernetes.io/gpu]" in changed_paths


def test_fields_that_change_anyway_are_taken_over_by_a_later_plan():
    world = brought(running(cluster("c", workerPools={"a": pool(2)})))
    world = replace(world, cluster=cluster("c", workerPools={"a": pool(3)}))

    assert [each for each in done(world) if each[1] == "c-pool-a"] == [("PoolScaled", "c-pool-a")]


def test_a_label_that_only_a_new_node_gets_replaces_the_nodes_and_says_so():
    lc = cluster("c", workerPools={"a": pool(2)})
    world = replace(running(lc), cluster=cluster("c", workerPools={"a": pool(2, labels={"tier": "gold"})}))
    rolled = action(world, "PoolRolled")
    assert rolled.disruption is Disruption.REPLACES
    assert (rolled.facts.nodes, rolled.disrupts) == (2, ("c-pool-a-0", "c-pool-a-1"))
    assert rolled.facts.why == ("labels or taints that are set when a node joins",)


def test_a_class_that_changed_makes_a_new_template_and_rolls_after_it():
    lc = cluster("c", workerPools={"a": pool(2, nodeClass="medium")})
    world = running(lc, node_class("medium"))
    world = replace(world, classes={"medium": node_class("medium", docker={"image": "kindest/node:v1.33.0"})})
    made, rolled = action(world, "TemplateCreated"), action(world, "PoolRolled")
    assert made.id in rolled.after
    assert rolled.facts.why == ("the machine template (nodeClass, provider settings)",)


def test_a_pool_keeps_its_template_when_only_what_we_would_generate_moved():
    lc = cluster("c", workerPools={"a": pool(2)})
    world = running(lc)
    old = [
        TemplateMeta(each.api_version, each.kind, _renamed(each.metadata, f"{each.metadata.name}-old"))
        for each in world.management.templates
    ]
    deployment = world.management.deployments["c-pool-a"]
    workers = [each for each in old if each.kind == "DevMachineTemplate" and "pool" in each.metadata.name]
    worker = workers[0].metadata.name
    deployment = changed(deployment, "spec.template.spec.infrastructureRef.name", worker)
    world = with_deployment(with_management(world, templates=[*world.management.templates, *old]), deployment)
    assert "PoolRolled" not in dict(done(world))


def test_switching_to_an_equal_class_is_recorded_and_replaces_nothing():
    lc = cluster("c", workerPools={"a": pool(2, nodeClass="medium")})
    world = running(lc, node_class("medium"))
    switched = cluster("c", workerPools={"a": pool(2, nodeClass="twin")})
    world = replace(world, cluster=switched, classes={"twin": node_class("twin")})
    assert {reason for reason, _ in done(world)} == {"TemplateAnnotated", "PoolUpdated"}


def _renamed(metadata: ObjectMeta, name: str) -> ObjectMeta:
    return ObjectMeta(name=name, labels=metadata.labels, annotations=metadata.annotations, namespace=metadata.namespace)


def test_an_unreferenced_template_is_deleted_unless_it_is_foreign():
    world = running(cluster("c", workers=1))
    ours = world.management.templates[1]
    stale = TemplateMeta(ours.api_version, ours.kind, _renamed(ours.metadata, "c-pool-default-stale"))
    foreign = TemplateMeta(ours.api_version, ours.kind, ObjectMeta(name="theirs", namespace="capi-c"))
    world = with_management(world, templates=[*world.management.templates, stale, foreign])
    assert done(world) == [("TemplateDeleted", "c-pool-default-stale")]


def test_a_hand_edit_of_our_fields_is_reverted():
    world = running(cluster("c", workers=1))
    edited = changed(world.management.deployments["c-pool-default"], "spec.template.spec.version", "v1.31.0")
    # The version of a pool is observed: an upgrade back takes its turn in the sequence.
    assert done(with_deployment(world, edited)) == [("PoolRolled", "c-pool-default")]


def test_a_cluster_keeps_to_the_docker_kinds_it_was_made_of():
    docker = Served({"DockerCluster": ("v1beta2",), "DockerMachineTemplate": ("v1beta2",)})
    world = replace(running(cluster("c", workers=1), served=docker), served=BOTH_SERVED)
    assert done(world) == []


# numbers


def test_a_number_that_only_our_main_manager_holds_is_taken_over_before_it_is_left_out():
    world = running(cluster("c", workerPools={"a": pool(0)}))
    deployment = world.management.deployments["c-pool-a"]
    held = stored({**deployment, "metadata": {k: deployment["metadata"][k] for k in ("name", "namespace", "labels")}})
    labelled = cluster("c", workerPools={"a": pool(0, labels={"node.cluster.x-k8s.io/tier": "x"})})
    world = replace(with_deployment(world, settled(held)), cluster=labelled)
    taken, updated = action(world, "ReplicasTakenOver"), action(world, "PoolUpdated")
    assert taken.id in updated.after
    assert write(world, "ReplicasTakenOver").resource_version == "1"
    assert "replicas" not in write(world, "PoolUpdated").body["spec"]


def test_an_autoscaled_pool_keeps_the_autoscalers_number():
    lc = cluster("c", workerPools={"a": pool(2, min=1, max=5)}, autoscaling="ClusterAutoscaler")
    world = running(lc)
    grown = with_replicas(world.management.deployments["c-pool-a"], 4, "cluster-autoscaler")
    assert done(with_deployment(world, settled(grown))) == []


@pytest.mark.parametrize(("current", "after"), [(0, 1), (9, 5)])
def test_an_autoscaled_pool_outside_its_bounds_is_brought_to_them(current, after):
    lc = cluster("c", workerPools={"a": pool(2, min=1, max=5)}, autoscaling="ClusterAutoscaler")
    world = running(lc)
    moved = with_replicas(world.management.deployments["c-pool-a"], current, "cluster-autoscaler")
    assert write(with_deployment(world, settled(moved)), "PoolScaled").body == {"spec": {"replicas": after}}


def test_bounds_without_autoscaling_are_reported_and_ignored():
    world = running(cluster("c", workerPools={"a": pool(2, min=1, max=5)}))
    assert done(world) == []
    assert blocked(world)["AutoscalingIgnored"] == AutoscalingIgnored(pool="a", replicas=2)


# refusals


def test_a_missing_class_blocks_its_pool_alone_and_that_is_still_scaled():
    pools = {**SEED_POOLS, "gpu": {**SEED_POOLS["gpu"], "replicas": 5}}
    world = replace(running(SEED, *CLASSES), cluster=cluster("prod", workerPools=pools))
    world = replace(world, classes={name: each for name, each in world.classes.items() if name != "gpu-large"})
    assert done(world) == [("PoolScaled", "prod-pool-gpu")]
    assert blocked(world)["NodeClassNotFound"].node_class == "gpu-large"


def test_a_class_without_this_provider_is_unfit():
    lc = cluster("c", workerPools={"a": pool(1, nodeClass="medium")})
    world = snapshot(lc, node_class("medium", aws={"instanceType": "m5.large"}), served=SERVED)
    assert "no entry for docker" in blocked(world)["NodeClassUnfit"].error


def test_a_key_that_keeps_nodes_from_joining_blocks_its_pool():
    lc = cluster("c", workerPools={"a": pool(1, labels={"kubernetes.io/role": "x"}), "b": pool(1)})
    world = snapshot(lc, served=SERVED)
    assert "KeyRefused" in blocked(world)
    assert ("PoolCreated", "c-pool-b") in done(world)
    assert ("PoolCreated", "c-pool-a") not in done(world)


def test_a_paused_cluster_is_left_alone():
    world = running(cluster("c", workers=3))
    world = replace(world, cluster=cluster("c", workers=5))
    paused = changed(world.management.cluster, "spec.paused", True)
    assert done(with_management(world, cluster=paused)) == []
    assert "ClusterPaused" in blocked(with_management(world, cluster=paused))


def test_an_invalid_spec_from_an_older_schema_creates_nothing():
    world = snapshot(cluster("c", workers=1, controlPlane=2), served=SERVED)
    assert done(world) == []
    assert blocked(world)["Invalid"].error == "control plane count must be odd for HA"


# legacy workers


def test_legacy_workers_become_the_default_pool_without_a_rollout():
    lc = cluster("c", workers=3)
    world = running(cluster("c", workerPools={}))
    templates = [
        TemplateMeta("x/v1beta2", kind, ObjectMeta(name="c-md-0", namespace="capi-c"))
        for kind in ("DevMachineTemplate", "KubeadmConfigTemplate")
    ]
    world = replace(world, cluster=lc)
    world = with_management(world, templates=[*world.management.templates, *templates])
    world = with_deployment(world, legacy(lc))
    reasons = done(world)
    assert ("PoolAdopted", "c-md-0") in reasons
    assert not any(reason in ("PoolCreated", "PoolRolled") for reason, _ in reasons)
    body = next(w.body for w in plan(world, NOW).writes.values() if w.body and "spec" in w.body)
    assert body["spec"]["selector"] == legacy(lc)["spec"]["selector"]


def test_legacy_workers_are_kept_beside_a_new_pool():
    lc = cluster("c", workerPools={"default": pool(3), "gpu": pool(1)})
    world = with_deployment(snapshot(lc, served=SERVED), legacy(lc))
    made = [name for reason, name in done(world) if reason == "PoolCreated"]
    assert made == ["c-pool-gpu"]


def test_of_two_deployments_of_a_pool_the_one_with_machines_is_used():
    lc = cluster("c", workers=3)
    world = with_deployment(running(lc), legacy(lc, replicas=0))
    assert blocked(world)["TwoMachineDeployments"].kept == "c-pool-default"
    assert not any(reason == "PoolDeleted" for reason, _ in done(world))


def test_one_without_a_version_keeps_none_until_it_is_its_turn():
    lc = cluster("c", workers=3)
    world = running(lc)
    bare = changed(legacy(lc), "spec.template.spec.version", None)
    waiting = settled(world.management.control_plane, version="v1.30.0")
    world = with_management(world, deployments={bare["metadata"]["name"]: bare}, control_plane=waiting)
    assert "version" not in write(world, "PoolAdopted").body["spec"]["template"]["spec"]


def test_a_foreign_machine_deployment_is_never_touched():
    world = running(cluster("c", workers=1))
    foreign = legacy(cluster("c", workers=1))
    foreign = changed(foreign, "metadata.name", "theirs-pool-default")
    assert done(with_deployment(world, foreign)) == []


def test_legacy_workers_beside_a_spec_without_their_pool_are_never_removed_without_approval():
    lc = cluster("c", workerPools={"a": pool(1)})
    world = with_deployment(running(lc), legacy(lc))
    assert done(world) == []
    assert blocked(world)["WorkersUnclaimed"].text() == (
        "MachineDeployment c-md-0 with 3 replicas belongs to no pool of c and is left unchanged. Add pool default to "
        "spec.nodes.workerPools to manage it, or delete it"
    )


# the control plane


def with_control_plane(number, wanted, **given):
    """Return a cluster whose control plane is scaled from one number of nodes to another."""
    world = running(cluster("c", controlPlane=number, workers=1))
    nodes = [
        machine(f"cp-{each}", "", node=f"cp-{each}", metadata={"labels": {names.CONTROL_PLANE_LABEL: ""}})
        for each in range(number)
    ]
    lc = cluster("c", controlPlane=wanted, workers=1, metadata={"generation": 7}, **given)
    return replace(with_management(world, machines=[*world.management.machines, *nodes]), cluster=lc)


def test_a_control_plane_scale_down_disrupts_the_removed_nodes_and_reports_it():
    found = action(with_control_plane(3, 1), "ControlPlaneScaled")
    assert (found.disruption, len(found.disrupts)) == (Disruption.DELETES, 2)
    assert found.facts.text() == ("Scales the control plane of c from 3 to 1, which deletes 2 control plane nodes")


@pytest.mark.parametrize("given", [{}, {"version": "1.33.0"}], ids=["alone", "with a rollout"])
def test_a_control_plane_that_is_scaled_down_waits_for_approval_whatever_the_limit(given):
    held = brake(plan(with_control_plane(3, 1, **given), NOW).plan, Limit(nodes=100), 1000).held
    assert [each.reason for each in held.actions] == ["ControlPlaneScaled"]
    assert brake(plan(with_control_plane(1, 3), NOW).plan, Limit(nodes=100), 1000).held is None


def test_a_control_plane_scale_up_disrupts_nothing_and_reports_it():
    found = action(with_control_plane(1, 3), "ControlPlaneScaled")
    assert (found.disruption, found.disrupts) == (Disruption.NONE, ())
    assert found.facts.text() == "Scales the control plane of c from 1 to 3"


def test_a_control_plane_that_shrinks_with_another_version_says_both():
    found = action(with_control_plane(3, 1, version="1.33.0"), "ControlPlaneScaled")
    assert found.disruption is Disruption.REPLACES
    assert found.facts.text() == (
        "Scales the control plane of c from 3 to 1, which deletes 2 control plane nodes, together with a rollout that "
        "replaces 3 control plane nodes of c, one at a time: the Kubernetes version changed"
    )


def test_a_created_control_plane_is_reported():
    made = action(snapshot(cluster("c", workers=1), served=SERVED), "ControlPlaneApplied")
    assert made.facts.text() == "Creates the control plane of c at v1.32.0"


def test_removals_are_approved_for_one_generation_of_the_cluster():
    """The same edit made again later is a new approval group."""
    before = running(cluster("c", workerPools={"a": pool(3)}))
    smaller = [
        replace(before, cluster=cluster("c", workerPools={"a": pool(1)}, metadata={"generation": each}))
        for each in (4, 6)
    ]
    groups = [action(world, "PoolScaled").approval_group for world in smaller]
    assert groups == ["change uid-c 4 c-pool-a: 3 to 1", "change uid-c 6 c-pool-a: 3 to 1"]
    assert action(with_control_plane(3, 1), "ControlPlaneScaled").approval_group == (
        "change uid-c 7 control plane: 3 to 1"
    )


def scaled(world, **numbers):
    """Return the world after somebody scaled the MachineDeployments of these pools by hand."""
    for id, number in numbers.items():
        world = with_deployment(world, with_replicas(world.management.deployments[f"c-pool-{id}"], number))
    return world


def test_an_approval_covers_no_other_change_of_the_same_generation():
    """Somebody scales pool b by hand, after the scale-down of pool a was read and approved."""
    before = running(cluster("c", workerPools={"a": pool(3), "b": pool(2)}))
    asked = replace(before, cluster=cluster("c", workerPools={"a": pool(1), "b": pool(2)}))
    nothing = Limit(nodes=0, percent=0)
    approved = brake(plan(asked, NOW).plan, nothing, 10).held.id

    held = brake(plan(scaled(asked, b=6), NOW).plan, nothing, 10, [approved]).held
    assert [each.object.name for each in held.actions] == ["c-pool-b"]
    held = brake(plan(scaled(asked, a=9), NOW).plan, nothing, 10, [approved]).held
    assert [each.object.name for each in held.actions] == ["c-pool-a"]
    assert brake(plan(asked, NOW).plan, nothing, 10, [approved]).held is None


def test_changes_of_one_generation_are_counted_together():
    """No pool alone exceeds the limit."""
    before = running(cluster("c", workerPools={"a": pool(3), "b": pool(3)}))
    asked = replace(before, cluster=cluster("c", workerPools={"a": pool(1), "b": pool(1)}))
    braked = brake(plan(asked, NOW).plan, Limit(nodes=3, percent=0), 10)
    assert [each.object.name for each in braked.held.actions] == ["c-pool-a", "c-pool-b"]
    assert any("held: 4 of 10 managed nodes" in each.facts.text() for each in braked.now.blocked)
    first, _ = braked.held.id.split("-")
    (left,) = brake(plan(asked, NOW).plan, Limit(nodes=3, percent=0), 10, [first]).held.actions
    assert left.approval_group.endswith(": 3 to 1")
