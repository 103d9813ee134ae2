"""The generated role is minimal and sufficient."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.builders.pools import pool
from tests.builders.pools_env import CLASSES, CLUSTERS, SERVICES
from tests.builders.rights import COUNTED, RENEWED, unregistered

from nodeyard.capabilities.pools import names, watched
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.planning import removals
from nodeyard.kube.names import APPROVE, NAMESPACE
from nodeyard.runtime import rbac
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.operators import LOCAL_WEBHOOKS
from nodeyard.testing.session import Session

RARE = {COUNTED, RENEWED} | unregistered(POOLS)
ALIKE = {
    each.plural: provider.plural
    for provider, *others in (watched.INFRASTRUCTURE_CLUSTERS, watched.MACHINE_TEMPLATES)
    for each in others
}
"""Provider kinds that are not installed here; an installed provider stands for them."""


@pytest.fixture
def elsewhere():
    """A second API server, without the Cluster API objects."""
    with EmbeddedServer(controllers=()) as server:
        yield server


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(removals, "SETTLE", timedelta(seconds=1))
    monkeypatch.setattr(removals, "RETRY", timedelta(seconds=1))


def test_every_right_is_used_and_no_other_is_needed(own_pools_env, elsewhere, hurried, audited, operator):
    """Run the life of a cluster: a pool is drained, then the cluster is deleted."""
    audit = audited(POOLS, alike=ALIKE)
    operator(POOLS, webhooks=LOCAL_WEBHOOKS)
    node_class, service = (
        own_pools_env.node_class(own_pools_env.name("class")),
        own_pools_env.service(own_pools_env.name("service")),
    )
    metadata = {"annotations": {APPROVE: "0123456789ab"}}
    own_pools_env.patch(f"{CLASSES}/{node_class}", {"metadata": metadata})
    pools = {"stays": pool(1), "goes": pool(1, nodeClass=node_class)}
    name = own_pools_env.cluster(own_pools_env.name(), workerPools=pools, pivot="Never")
    for each in pools:
        own_pools_env.wait_for_nodes(name, each, 1)
    for path in (f"{CLASSES}/{node_class}", f"{SERVICES}/{service}"):
        own_pools_env.wait_until(lambda path=path: own_pools_env.rest.get(path).get("status"), f"{path} says how it is")
    own_pools_env.wait_until(
        lambda: not own_pools_env.rest.get(f"{CLASSES}/{node_class}")["metadata"].get("annotations"),
        "an approval that nothing needs goes",
    )
    (node,) = own_pools_env.nodes_of(name, "goes")
    own_pools_env.machines.add_pods(node["metadata"]["name"], 1, app="evicted")
    own_pools_env.change_pools(name, goes=None)
    own_pools_env.wait_until_removed(name, "goes")
    own_pools_env.wait_until(lambda: not own_pools_env.templates(name, "goes"), "its templates are collected")
    own_pools_env.set_kubeconfig(name, elsewhere.config)
    own_pools_env.wait_until(
        lambda: own_pools_env.status(name).get("pivoted") is False, "it is known to be another cluster"
    )
    own_pools_env.delete(name)
    own_pools_env.wait_until(lambda: not own_pools_env.exists(f"{CLUSTERS}/{name}"), "it is gone")

    assert audit.unused(RARE) == set()
    assert audit.forbidden() == set()


def test_its_account_reads_a_secret_by_its_name_and_lists_none(api, eventually):
    """A stolen token can read a Secret only by name."""
    api.rest.replace_or_create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    account = rbac.service_account(POOLS)
    role = rbac.grant_role(names.CAPABILITY, names.KUBECONFIGS)
    group = "rbac.authorization.k8s.io"
    granted = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }
    for each in (*rbac.manifests(POOLS), granted):
        api.rest.replace_or_create(each)
    http = Session(api.url, api.authority.pem, api.admin_token)
    user = {"Impersonate-User": rbac.username(account)}
    kube_system = "/api/v1/namespaces/kube-system/secrets"

    eventually(lambda: http.get(f"{kube_system}/prod-kubeconfig", headers=user).status == 404, "it may ask by name")

    for path in ("/api/v1/secrets", kube_system, f"{kube_system}?watch=1", "/api/v1/secrets?watch=1"):
        assert http.get(path, headers=user).status == 403, path
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}
    assert http.post(kube_system, secret, headers=user).status == 403
    assert http.delete(f"{kube_system}/prod-kubeconfig", headers=user).status == 403
