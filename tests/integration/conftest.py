"""What integration tests share."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.builders.lattices import Lattice
from tests.builders.yards import Yard

from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.planning import drains
from nodeyard.capabilities.spares.definition import NODE_TEMPLATE
from nodeyard.testing import foreign
from nodeyard.testing.operators import Operators


@pytest.fixture(scope="session")
def node_templates(api):
    """Their definition, on the server."""
    foreign.install(api.rest, [NODE_TEMPLATE.render()])


@pytest.fixture
def yard(api, node_templates):
    """Spare nodes and templates of this test alone. Ask for it before `operator`, so that it outlives those."""
    yard = Yard(api.rest)
    yield yard
    yard.close()


@pytest.fixture(scope="session")
def lattice_kinds(api):
    """The definitions of pools, on the server."""
    foreign.install(api.rest, list(POOLS.definitions()))


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
