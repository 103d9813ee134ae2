"""What integration tests share."""

from __future__ import annotations

import pytest
from tests.builders.yards import Yard

from nodeyard.capabilities.spares.definition import NODE_TEMPLATE
from nodeyard.testing import foreign


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
