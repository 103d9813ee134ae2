"""Adoption: legacy workers are adopted unchanged, foreign and paused objects are left unchanged."""

import json

import pytest
from tests.builders.machines import VERSION, Clusters, deployment
from tests.builders.pools import pool

from nodeyard.capabilities.pools import names

TIER = "node.cluster.x-k8s.io/tier"
OURS = {names.MANAGER, names.REPLICAS_MANAGER}
MERGED = {"nodes": {"workers": None, "workerPools": {"default": {"replicas": 2}}}}


@pytest.fixture(scope="module")
def before(pools_env):
    """A legacy cluster with two workers, and a foreign MachineDeployment."""
    name, clusters = pools_env.name("old"), Clusters(pools_env.machines)
    clusters.cluster(name)
    workers, other = names.legacy_deployment(name), f"{name}-theirs"
    for each, count in ((workers, 2), (other, 1)):
        clusters.infrastructure_template(name, each)
        clusters.config_template(name, each, {"from": "before"})
        body = json.dumps(deployment(name, "default", count)).replace(names.deployment(name, "default"), each)
        pools_env.rest.create(json.loads(body))
    for each, count in ((workers, 2), (other, 1)):
        pools_env.machines.wait_for_nodes(name, each, count)
    return name


@pytest.fixture(scope="module")
def legacy(pools_env, before):
    """The same after its LatticeCluster was applied, with the original Machines."""
    machines = _machines(pools_env, before)
    pools_env.cluster(before, version=VERSION, workers=2)
    pools_env.wait_until_ready(before)
    return before, machines


def _machines(pools_env, name):
    found = pools_env.machines.machines(name, names.legacy_deployment(name))
    return [each["metadata"]["name"] for each in found]


def _workers(pools_env, name):
    return pools_env.machines.deployment(name, names.legacy_deployment(name))


def _managers(obj):
    return {each["manager"] for each in obj["metadata"]["managedFields"]}


def test_legacy_workers_are_the_pool_default_with_their_machines(pools_env, legacy):
    name, machines = legacy
    workers = _workers(pools_env, name)
    assert workers["metadata"]["labels"][names.POOL] == "default"
    assert names.MANAGER in _managers(workers)
    assert pools_env.deployment(name, "default") is None
    assert _machines(pools_env, name) == machines
    told = pools_env.pool(name, "default")
    assert (told["machineDeployment"], told["desired"], told["ready"]) == (names.legacy_deployment(name), 2, 2)


def test_naming_the_pool_of_existing_workers_changes_nothing(pools_env, legacy):
    name, machines = legacy
    generation = _workers(pools_env, name)["metadata"]["generation"]

    pools_env.change(name, **MERGED)

    pools_env.wait_until_ready(name)
    assert _workers(pools_env, name)["metadata"]["generation"] == generation
    assert pools_env.deployment(name, "default") is None
    assert _machines(pools_env, name) == machines


def test_a_pool_next_to_legacy_workers_leaves_them_unchanged_and_both_scale(pools_env, legacy):
    name, machines = legacy
    pools_env.change(name, **MERGED)

    pools_env.change_pools(name, extra=pool(1), default={"replicas": 3})

    pools_env.wait_for_nodes(name, "extra", 1)
    pools_env.machines.wait_for_nodes(name, names.legacy_deployment(name), 3)
    assert set(machines) < set(_machines(pools_env, name))
    assert pools_env.deployment(name, "default") is None


def test_a_foreign_deployment_is_never_changed(pools_env, legacy):
    name, _ = legacy
    pools_env.wait_until_ready(name)
    other = pools_env.machines.deployment(name, f"{name}-theirs")
    assert not OURS & _managers(other)
    assert other["spec"]["replicas"] == 1
    for group_version, plural in ((names.BOOTSTRAP_API_VERSION, "kubeadmconfigtemplates"),):
        found = pools_env.rest.get(pools_env.path(name, plural, f"{name}-theirs", group_version))
        assert not OURS & _managers(found)
    assert "theirs" not in pools_env.status(name)["workerPools"]


def test_a_paused_cluster_is_not_written_and_everything_is_applied_afterwards(pools_env, legacy):
    name, _ = legacy
    pools_env.change(name, **MERGED)
    pools_env.change_pools(name, extra=pool(1))
    pools_env.wait_for_nodes(name, "extra", 1)
    pools_env.machines.wait_for_nodes(name, names.legacy_deployment(name), 2)
    pools_env.wait_until_ready(name)
    pools_env.pause(name, is_on=True)
    pools_env.wait_for_condition(name, "Ready", "False", "ClusterPaused")
    pools_env.wait_until(lambda: pools_env.count_events(name, "ClusterPaused"), "it is told")
    contents, written = pools_env.written_objects(name), pools_env.operator.write_counts()

    pools_env.change_pools(name, extra=pool(2, labels={TIER: "gold"}), late=pool(1), default=None)

    pools_env.wait_for_condition(name, "Ready", "False", "ClusterPaused")
    assert pools_env.pool(name, "extra")["phase"] == "Paused"
    assert pools_env.written_objects(name) == contents
    sent = {each for each, count in pools_env.operator.write_counts().items() if count > written.get(each, 0)}
    assert sent == {f"patch {names.CLUSTER_PLURAL}.{names.GROUP}"}
    assert not any(node["spec"].get("unschedulable") for node in pools_env.machines.nodes(
        name, names.legacy_deployment(name)))  # fmt: skip
    pools_env.pause(name, is_on=False)
    pools_env.wait_for_nodes(name, "late", 1)
    pools_env.wait_for_nodes(name, "extra", 2)
    pools_env.machines.wait_until_removed(name, names.legacy_deployment(name))


def test_legacy_workers_without_a_pool_in_the_spec_stay_and_are_reported(pools_env):
    name, clusters = pools_env.name("old"), Clusters(pools_env.machines)
    clusters.cluster(name)
    workers = names.legacy_deployment(name)
    clusters.infrastructure_template(name, workers)
    clusters.config_template(name, workers, {"from": "before"})
    body = json.dumps(deployment(name, "default", 1)).replace(names.deployment(name, "default"), workers)
    pools_env.rest.create(json.loads(body))
    pools_env.machines.wait_for_nodes(name, workers, 1)
    machines = _machines(pools_env, name)

    pools_env.cluster(name, version=VERSION, workerPools={"a": pool(0)})

    pools_env.wait_until_ready(name)
    pools_env.wait_until(lambda: pools_env.count_events(name, "WorkersUnclaimed"), "an event tells of it")
    assert _machines(pools_env, name) == machines
    assert not OURS & _managers(_workers(pools_env, name))
    assert "default" not in pools_env.status(name)["workerPools"]
    (node,) = pools_env.machines.nodes(name, workers)
    assert not node["spec"].get("unschedulable")
