"""What integration tests share."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta

import pytest
from tests.builders.estates import an_estate, install_kinds
from tests.builders.guards import MUTATING, SECRET, VALIDATING, discard
from tests.builders.lattices import Lattice
from tests.builders.rights import Audit
from tests.builders.woods import Wood, hurried
from tests.builders.yards import Yard

from nodeyard.app import operator as assembly
from nodeyard.capabilities.affinity.planning import crd_teardown
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.planning import drains
from nodeyard.capabilities.spares.definition import NODE_TEMPLATE
from nodeyard.runtime.remote import connection
from nodeyard.runtime.webhooks import configuration_name
from nodeyard.testing import third_party_crds
from nodeyard.testing.controlplane import ControlPlane
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.operators import Operators


@pytest.fixture(scope="session")
def node_templates(api):
    """Their definition, on the server."""
    third_party_crds.install(api.rest, [NODE_TEMPLATE.render()])


@pytest.fixture
def yard(api, node_templates):
    """Spare nodes and templates of this test alone. Ask for it before `operator`, so that it outlives those."""
    yard = Yard(api.rest)
    yield yard
    yard.close()


@pytest.fixture(scope="session")
def lattice_kinds(api):
    """The definitions of pools, on the server; a kubeconfig that is replaced is used soon."""
    third_party_crds.install(api.rest, list(POOLS.definitions()))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(connection, "READ_SECONDS", 1.0)
        yield


@pytest.fixture
def lattice(api, lattice_kinds, machines):
    """LatticeClusters of this test alone. Ask for it before `operator`, so that it outlives those."""
    lattice = Lattice(api, machines)
    yield lattice
    lattice.close()


@pytest.fixture(scope="module")
def lattices(api, lattice_kinds, machines):
    """LatticeClusters that the tests of a file share, with an operator that runs all the while and drains fast.

    A control plane costs more than a pool: have one cluster, and pools of its own for each test.
    """
    lattice, operators = Lattice(api, machines), Operators(api, pytest.fail)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(drains, "SETTLE", timedelta(seconds=1))
        patched.setattr(drains, "RETRY", timedelta(seconds=1))
        lattice.operator = operators(POOLS)
        yield lattice
        operators.close()
    lattice.close()


@pytest.fixture(scope="session")
def leaf_servers(api):
    """Two further servers of the same make, without controllers: their nodes are what tests say."""
    with ExitStack() as stack:
        yield [stack.enter_context(ControlPlane() if api.is_real else EmbeddedServer(controllers=())) for _ in "ab"]


@pytest.fixture(scope="session")
def cluster_kind(api):
    """The definition of clustertree, on the server."""
    third_party_crds.install(api.rest, list(CLUSTERTREE.definitions()))


@pytest.fixture(scope="module")
def tree_operator(api, cluster_kind):
    """An operator that runs all the while, with rounds of two seconds instead of ten."""
    operators = Operators(api, pytest.fail)
    yield operators(hurried())
    operators.close()


@pytest.fixture
def wood(request, api, cluster_kind, leaf_servers):
    """Clusters and leaf nodes of this test alone. Ask for it before `operator`, so that it outlives those."""
    wood = Wood(api, leaf_servers)
    yield wood
    wood.close(patience=15.0 if "tree_operator" in request.fixturenames else 0.0)


@pytest.fixture(scope="session")
def affinity_kinds(api):
    """The definitions of affinity and of Flux, on the server; kinds that are not declared any more go soon."""
    install_kinds(api)
    with pytest.MonkeyPatch.context() as patched:
        # A real one that is deleted within a second of a change may stay for minutes: see `closings`.
        patched.setattr(crd_teardown, "SETTLE", timedelta(seconds=2 if api.is_real else 0.5))
        yield


@pytest.fixture(scope="module")
def estate(api, affinity_kinds):
    """Classes, tenants and applications of one file, with an operator that runs all the while and is asked at
    admission. Use names of your own for each test (`estates.unique`)."""
    with an_estate(api) as estate:
        estate.start()
        yield estate


@pytest.fixture
def lone_estate(api, affinity_kinds):
    """The same of one test alone, which starts its own operators; they have to be there still when it ends."""
    with an_estate(api) as estate:
        yield estate


@pytest.fixture
def audited(api, monkeypatch):
    """`audited(SPARES)`: what operators ask for from here on, beside their rights (`rights.Audit`).

    What they make once for all is made anew.
    """
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
