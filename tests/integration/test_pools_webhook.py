"""Webhooks of pools, called by the API server, on both servers."""

from __future__ import annotations

import pytest
from tests.builders.pools import cluster_body, pool
from tests.builders.pools_env import CLASSES, CLUSTERS
from tests.builders.rule_webhooks import VALIDATING, discard

from nodeyard.capabilities.pools import names
from nodeyard.testing.operators import LOCAL_WEBHOOKS

DRY = {"dryRun": "All"}
BAD = {"foo.k8s.io/team": "ml"}
PAUSED = {"annotations": {"nodeyard.dev/paused": "true"}}


@pytest.fixture
def http(own_pools_env):
    return own_pools_env.session


@pytest.fixture
def guard(api, http, operator, eventually):
    """Start the operator and wait until the API server calls its webhooks."""

    def start():
        operator("pools", webhooks=LOCAL_WEBHOOKS)
        eventually(
            lambda: http.post(CLUSTERS, cluster_body(workerPools={"a": pool(min=1)}), query=DRY).warnings, "asked"
        )

    yield start
    discard(api.rest, f"{VALIDATING}/nodeyard-{names.CAPABILITY}")


def test_a_key_that_would_keep_nodes_out_is_denied_before_it_is_stored(guard, http, own_pools_env):
    guard()

    answer = http.post(CLUSTERS, cluster_body(own_pools_env.name(), workerPools={"gpu": pool(labels=BAD)}), query=DRY)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message.startswith(
        'admission webhook "clusters.pools.nodeyard.dev" denied the request: spec.nodes.workerPools[gpu].labels: '
        'Invalid value: "foo.k8s.io/team": the kubelet does not start with this label'
    )


def test_ignored_bounds_are_warned_about(guard, http, own_pools_env):
    guard()

    answer = http.post(CLUSTERS, cluster_body(own_pools_env.name(), workerPools={"general": pool(5, min=3)}), query=DRY)

    assert answer.status == 201
    (warning,) = answer.warnings
    assert "min/max autoscaling not implemented, using fixed replicas=5" in warning


def test_a_cluster_with_bad_keys_from_before_can_still_be_scaled_and_fixed(guard, http, own_pools_env):
    name = own_pools_env.cluster(own_pools_env.name(), workerPools={"gpu": pool(labels=BAD)}, metadata=PAUSED)
    guard()
    path, pools = f"{CLUSTERS}/{name}", "workerPools"

    scaled = http.patch(path, {"spec": {"nodes": {pools: {"gpu": {"replicas": 3}}}}}, query=DRY)
    worse = http.patch(path, {"spec": {"nodes": {pools: {"gpu": {"labels": {"k8s.io/x": "y"}}}}}}, query=DRY)
    mended = http.patch(path, {"spec": {"nodes": {pools: {"gpu": {"labels": None}}}}}, query=DRY)

    assert (scaled.status, len(scaled.warnings)) == (200, 1)
    assert "accepted because the stored object already has it" in scaled.warnings[0]
    assert worse.status == 422
    assert (mended.status, mended.warnings) == (200, [])


def test_a_class_in_use_goes_with_a_warning_that_names_the_pools(guard, http, own_pools_env):
    kind = own_pools_env.node_class(own_pools_env.name("class"), docker={})
    name = own_pools_env.cluster(own_pools_env.name(), workerPools={"gpu": pool(nodeClass=kind)}, metadata=PAUSED)
    guard()

    answer = http.delete(f"{CLASSES}/{kind}", query=DRY)

    assert answer.status == 200
    (warning,) = answer.warnings
    assert f"is used by 1 pool ({name}/gpu)" in warning


def test_a_self_managed_cluster_is_not_deleted_and_a_warning_names_what_a_change_replaces(guard, http, own_pools_env):
    guard()
    name = own_pools_env.cluster(own_pools_env.name(), controlPlane=3, workerPools={"gpu": pool(1)})
    own_pools_env.wait_for_nodes(name, "gpu", 1)
    path = f"{CLUSTERS}/{name}"

    denied = http.delete(path, query=DRY)
    rolled = http.patch(path, {"spec": {"nodes": {"workerPools": {"gpu": {"labels": {"a": "b"}}}}}}, query=DRY)
    taken_out = http.patch(path, {"spec": {"nodes": {"workerPools": {"gpu": None}}}}, query=DRY)
    smaller = http.patch(path, {"spec": {"nodes": {"controlPlane": 1}}}, query=DRY)
    own_pools_env.patch(path, {"metadata": {"annotations": {names.ORPHAN_ON_DELETE: names.TRUE}}})
    let_go = http.delete(path, query=DRY)

    assert denied.status == 403
    assert f"{name} manages itself and cannot delete itself" in denied.message
    assert rolled.status == 200
    assert "rollout of pool gpu that replaces 1 node" in rolled.warnings[0]
    assert any("Starts removing pool gpu: 1 node is cordoned and drained" in each for each in taken_out.warnings)
    assert f"Scales the control plane of {name} from 3 to 1" in smaller.warnings[0]
    assert let_go.status == 200
