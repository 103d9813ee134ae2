"""Fixtures of integration tests."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta

import pytest
from tests.builders.affinity_env import install_crds, run_affinity_env
from tests.builders.pools_env import PoolsEnv
from tests.builders.rights import Audit
from tests.builders.rule_webhooks import MUTATING, SECRET, VALIDATING, discard
from tests.builders.spares_env import SparesEnv
from tests.builders.tree_env import TreeEnv, with_fast_lease_loop

from nodeyard.app import operator as assembly
from nodeyard.capabilities.affinity.planning import definitions
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.planning import removals
from nodeyard.capabilities.spares.definition import NODE_TEMPLATE
from nodeyard.runtime.remote import connection
from nodeyard.runtime.webhooks import configuration_name
from nodeyard.testing import third_party_crds
from nodeyard.testing.controlplane import ControlPlane
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.operators import Operators


@pytest.fixture(scope="session")
def node_templates(api):
    """The CRD of spares on the server."""
    third_party_crds.install(api.rest, [NODE_TEMPLATE.render()])


@pytest.fixture
def spares_env(api, node_templates):
    """Spare nodes and templates of this test. Request it before `operator`, so that it is torn down later."""
    spares_env = SparesEnv(api.rest)
    yield spares_env
    spares_env.close()


@pytest.fixture(scope="session")
def pool_crds(api):
    """The CRDs of pools on the server; a replaced kubeconfig is read soon."""
    third_party_crds.install(api.rest, list(POOLS.definitions()))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(connection, "READ_SECONDS", 1.0)
        yield


@pytest.fixture
def own_pools_env(api, pool_crds, machines):
    """LatticeClusters of this test. Request it before `operator`, so that it is torn down later."""
    own_pools_env = PoolsEnv(api, machines)
    yield own_pools_env
    own_pools_env.close()


@pytest.fixture(scope="module")
def pools_env(api, pool_crds, machines):
    """LatticeClusters that the tests of a file share, with a running operator that drains fast.

    A control plane costs more than a pool: use one cluster, and other pools in each test.
    """
    own_pools_env, operators = PoolsEnv(api, machines), Operators(api, pytest.fail)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(removals, "SETTLE", timedelta(seconds=1))
        patched.setattr(removals, "RETRY", timedelta(seconds=1))
        own_pools_env.operator = operators(POOLS)
        yield own_pools_env
        operators.close()
    own_pools_env.close()


@pytest.fixture(scope="session")
def leaf_servers(api):
    """Two further servers of the same type without controllers, so that only tests change their nodes."""
    with ExitStack() as stack:
        yield [stack.enter_context(ControlPlane() if api.is_real else EmbeddedServer(controllers=())) for _ in "ab"]


@pytest.fixture(scope="session")
def cluster_kind(api):
    """The CRD of clustertree on the server."""
    third_party_crds.install(api.rest, list(CLUSTERTREE.definitions()))


@pytest.fixture(scope="module")
def tree_operator(api, cluster_kind):
    """An operator that runs during all tests of the file, with lease rounds of two seconds instead of ten."""
    operators = Operators(api, pytest.fail)
    yield operators(with_fast_lease_loop())
    operators.close()


@pytest.fixture
def tree(request, api, cluster_kind, leaf_servers):
    """Clusters and leaf nodes of this test. Request it before `operator`, so that it is torn down later."""
    tree = TreeEnv(api, leaf_servers)
    yield tree
    tree.close(timeout=15.0 if "tree_operator" in request.fixturenames else 0.0)


@pytest.fixture(scope="session")
def affinity_crds(api):
    """The CRDs of affinity and of Flux on the server; kinds that are no longer declared are deleted soon."""
    install_crds(api)
    with pytest.MonkeyPatch.context() as patched:
        # A real CRD that is deleted within a second of a change may stay for minutes: see `definitions.SETTLE`.
        patched.setattr(definitions, "SETTLE", timedelta(seconds=2 if api.is_real else 0.5))
        yield


@pytest.fixture(scope="module")
def affinity(api, affinity_crds):
    """Classes, tenants and applications of one file, with a running operator whose webhooks are registered.

    Use unique names in each test (`affinity_env.unique`).
    """
    with run_affinity_env(api) as affinity:
        affinity.start()
        yield affinity


@pytest.fixture
def own_affinity_env(api, affinity_crds):
    """The same for one test that starts its own operators; they must still run at teardown."""
    with run_affinity_env(api) as affinity:
        yield affinity


@pytest.fixture
def audited(api, monkeypatch):
    """`audited(SPARES)`: audit the requests of operators from now on (`rights.Audit`). Objects that they create only
    once are deleted first."""
    registered = []

    def begin(capability, **options):
        name = configuration_name(capability.name)
        registered.extend([f"{VALIDATING}/{name}", f"{MUTATING}/{name}"])
        discard(api.rest, SECRET, *registered)
        audit, transport = Audit(capability, **options), assembly.HttpTransport
        monkeypatch.setattr(assembly, "HttpTransport", lambda config: audit.listen(transport(config)))
        return audit

    yield begin
    discard(api.rest, *registered)
