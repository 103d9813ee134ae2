"""Blocked progress: an upgrade at a paused or failing pool, an unusable class, two MachineDeployments of one pool."""

import pytest
from tests.builders.pools import pool

from nodeyard.capabilities.pools import names

OLD, NEW = "v1.34.0", "v1.35.0"


@pytest.fixture(scope="module")
def prod(pools_env):
    name = pools_env.cluster(pools_env.name(), version=OLD, workerPools={"alpha": pool(1), "beta": pool(1)})
    for each in ("alpha", "beta"):
        pools_env.wait_for_nodes(name, each, 1)
    pools_env.wait_until_ready(name)
    return name


def pause(pools_env, name, pool_id, *, is_on):
    path = pools_env.path(name, "machinedeployments", names.deployment(name, pool_id))
    pools_env.patch(path, {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "" if is_on else None}}})


def test_an_upgrade_stops_before_a_paused_pool_and_waits_for_one_that_does_not_come_up(pools_env, prod):
    pause(pools_env, prod, "alpha", is_on=True)
    pools_env.change(prod, provider={"kubernetes": {"version": NEW}})

    pools_env.wait_for_condition(prod, "VersionCurrent", "False", "VersionStopped")
    assert (
        pools_env.condition(prod, "VersionCurrent")["message"]
        == f"Upgrade to {NEW} stopped at pool alpha: it is paused"
    )
    assert [pools_env.pool(prod, each)["version"] for each in ("alpha", "beta")] == [OLD, OLD]
    _, planned = pools_env.nodeyard("plan")
    assert "VersionStopped" in planned

    pools_env.machines.hold_joins(names.deployment(prod, "alpha"))
    pause(pools_env, prod, "alpha", is_on=False)
    pools_env.wait_until(lambda: pools_env.pool(prod, "alpha")["version"] == NEW, "the first pool is told")
    pools_env.wait_until(
        lambda: len(pools_env.machines.machines(prod, names.deployment(prod, "alpha"))) == 2, "it grows"
    )
    pools_env.wait_for_condition(prod, "VersionCurrent", "False", "VersionWaits")
    waits = f"Upgrade to {NEW} is waiting for pool alpha: 0 of 1 Machines run it"
    assert pools_env.condition(prod, "VersionCurrent")["message"] == waits
    assert pools_env.pool(prod, "beta")["version"] == OLD

    pools_env.machines.release_joins(names.deployment(prod, "alpha"))
    pools_env.wait_for_condition(prod, "VersionCurrent", "True")
    for each in ("alpha", "beta"):
        pools_env.wait_for_nodes(prod, each, 1)


def test_a_class_without_an_entry_for_the_provider_blocks_its_pool_alone(pools_env, prod):
    unfit = pools_env.node_class(pools_env.name("unfit"), aws={"instanceType": "m5.large"})
    pools_env.change_pools(prod, gamma=pool(1, nodeClass=unfit))

    pools_env.wait_for_condition(prod, "Accepted", "False", "NodeClassUnfit")
    assert "add spec.providers.docker" in pools_env.condition(prod, "Accepted")["message"]
    assert pools_env.deployment(prod, "gamma") is None
    pools_env.change_pools(prod, beta={"replicas": 2})
    pools_env.wait_for_nodes(prod, "beta", 2)

    pools_env.change_class(unfit, docker={})
    pools_env.wait_for_nodes(prod, "gamma", 1)


def test_neither_of_two_deployments_of_one_pool_is_deleted_and_the_condition_names_both(pools_env, prod):
    """An incomplete migration from the legacy MachineDeployment."""
    pools_env.change_pools(prod, default=pool(1))
    pools_env.wait_for_nodes(prod, "default", 1)
    there = pools_env.deployment(prod, "default")
    spec = {**there["spec"], "replicas": 0}
    labels = {names.CLUSTER_NAME_LABEL: prod, names.DEPLOYMENT_NAME_LABEL: names.legacy_deployment(prod)}
    spec |= {"selector": {"matchLabels": labels}}
    spec["template"] = {**spec["template"], "metadata": {"labels": labels}}
    metadata = {"name": names.legacy_deployment(prod), "namespace": names.namespace(prod)}
    legacy = {"apiVersion": names.CAPI_API_VERSION, "kind": "MachineDeployment", "metadata": metadata, "spec": spec}
    pools_env.rest.create(legacy)

    pools_env.wait_for_condition(prod, "Accepted", "False", "TwoMachineDeployments")
    message = pools_env.condition(prod, "Accepted")["message"]
    assert f"{names.deployment(prod, 'default')} is used, {names.legacy_deployment(prod)} is left unchanged" in message
    other = pools_env.machines.deployment(prod, names.legacy_deployment(prod))
    assert names.MANAGER not in {each["manager"] for each in other["metadata"]["managedFields"]}
    assert len(pools_env.machines.nodes(prod, names.deployment(prod, "default"))) == 1
