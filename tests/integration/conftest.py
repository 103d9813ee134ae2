"""What integration tests share."""

from __future__ import annotations

import pytest
from tests.builders.yards import Yard


@pytest.fixture
def yard(api):
    """Spare nodes and templates of this test alone. Ask for it before `operator`, so that it outlives those."""
    yard = Yard(api.rest)
    yield yard
    yard.close()
