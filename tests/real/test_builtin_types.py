"""The table of built-in types is what the real server publishes: a new Kubernetes version shows up here first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nodeyard.apiserver.kinds import table
from nodeyard.kube.json import Object
from nodeyard.testing import ControlPlane
from nodeyard.testing.generate_type_table import published

OURS = ("always", "go", "inlined", "pointers")

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        yield running


def test_the_table_has_not_drifted_from_the_server(plane: ControlPlane) -> None:
    served = published(lambda path: plane.rest.call("GET", path))
    kept = {name: without(facts) for name, facts in table.definitions().items()}
    assert kept == served


def without(facts: Object) -> Object:
    """The table also has what only Go's sources tell."""
    return {key: value for key, value in facts.items() if key not in OURS}


def test_the_table_is_of_the_pinned_version(plane: ControlPlane) -> None:
    assert table.table().kubernetes == plane.rest.call("GET", "/version")["gitVersion"]
