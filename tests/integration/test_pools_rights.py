"""The generated role is minimal and sufficient."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.builders.lattices import CLASSES, CLUSTERS, SERVICES
from tests.builders.pools import pool
from tests.builders.rights import COUNTED, RENEWED, unregistered

from nodeyard.capabilities.pools import names, watched
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.planning import drains
from nodeyard.kube.names import NAMESPACE
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
    monkeypatch.setattr(drains, "SETTLE", timedelta(seconds=1))
    monkeypatch.setattr(drains, "RETRY", timedelta(seconds=1))


def test_every_right_is_used_and_no_other_is_needed(lattice, elsewhere, hurried, audited, operator):
    """Run the life of a cluster: a pool is drained, then the cluster is deleted."""
    audit = audited(POOLS, alike=ALIKE)
    operator(POOLS, webhooks=LOCAL_WEBHOOKS)
    node_class, service = lattice.node_class(lattice.name("class")), lattice.service(lattice.name("service"))
    pools = {"stays": pool(1), "goes": pool(1, nodeClass=node_class)}
    name = lattice.cluster(lattice.name(), workerPools=pools, pivot="Never")
    for each in pools:
        lattice.joined(name, each, 1)
    for path in (f"{CLASSES}/{node_class}", f"{SERVICES}/{service}"):
        lattice.until(lambda path=path: lattice.rest.get(path).get("status"), f"{path} says how it is")
    (node,) = lattice.nodes_of(name, "goes")
    lattice.machines.add_pods(node["metadata"]["name"], 1, app="evicted")
    lattice.change_pools(name, goes=None)
    lattice.gone(name, "goes")
    lattice.until(lambda: not lattice.templates(name, "goes"), "its templates are collected")
    lattice.lead(name, elsewhere.config)
    lattice.until(lambda: lattice.status(name).get("pivoted") is False, "it is known to be another cluster")
    lattice.delete(name)
    lattice.until(lambda: not lattice.exists(f"{CLUSTERS}/{name}"), "it is gone")

    assert audit.needless(RARE) == set()
    assert audit.beyond() == set()


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
