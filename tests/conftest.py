"""Settings of all tests."""

from __future__ import annotations

import gc
from itertools import chain, filterfalse, islice
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from nodeyard.process.logs import json_line

HERE = Path(__file__).parent
WAITING = ("conformance", "integration", "real", "surface")
COMPUTING_BETWEEN = 2

# As in production: formatting for terminals costs more than most of the logged work.
structlog.configure(processors=[json_line])

# Freeze the thousands of collected tests, so that garbage collection does not walk them.
gc.disable()

# The same examples on every machine and under any load, so that a failure means a change.
settings.register_profile(
    "nodeyard",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("nodeyard")


# Short names of the plugin's fixtures.


@pytest.fixture(scope="session")
def api(nodeyard_api):
    return nodeyard_api


@pytest.fixture
def kubectl(nodeyard_kubectl):
    return nodeyard_kubectl


@pytest.fixture
def faults(nodeyard_faults):
    return nodeyard_faults


@pytest.fixture
def operator(nodeyard_operator):
    return nodeyard_operator


@pytest.fixture
def world(nodeyard_world):
    return nodeyard_world


@pytest.fixture(scope="module")
def machines(nodeyard_machines):
    return nodeyard_machines


@pytest.fixture
def clock(nodeyard_clock):
    return nodeyard_clock


@pytest.fixture(scope="session")
def eventually(nodeyard_eventually):
    return nodeyard_eventually


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Between files that wait for servers come some that compute: neither cores nor workers stand idle for long. The
    rest of these, many and short, level the workers out at the end."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting, computing = filter(_waits, files), filterfalse(_waits, files)
    ordered = [each for path in waiting for each in (path, *islice(computing, COMPUTING_BETWEEN))]
    items[:] = [item for path in chain(ordered, computing) for item in files[path]]


def _waits(path: Path) -> bool:
    return path.relative_to(HERE).parts[0] in WAITING
