"""The pytest plugin: fixtures for tests of any capability, or of somebody else's operator.

It is loaded by choice: `pytest -p nodeyard.testing.plugin`, or `pytest_plugins = ["nodeyard.testing.plugin"]` in the
topmost conftest.py.

    nodeyard_api         an API server: embedded, and real where the control plane is built; a test runs on both
    nodeyard_kubectl     a kubectl that talks to it as administrator
    nodeyard_clock       a virtual clock
    nodeyard_eventually  waits for something to become true
    nodeyard_world       simulated nodes and pods on it
    nodeyard_machines    Cluster API on it, with machines that become nodes: played, or real with played providers
    nodeyard_faults      a proxy between a client and the API server that misbehaves on demand, by a seed
    nodeyard_operator    starts an operator against it: as its own user, under the role that is generated for it

Tests on the real control plane carry the mark `real`: `-m "not real"` leaves them out, `-m real` runs only them.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from nodeyard.client import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.process.clock import SystemClock, VirtualClock
from nodeyard.sim.world import World
from nodeyard.testing import wait
from nodeyard.testing.faults import FaultProxy

try:
    # In its strict mode it takes no other async fixtures.
    from pytest_asyncio import fixture as _async_fixture
except ImportError:
    _async_fixture = pytest.fixture  # type: ignore[assignment]

ARGUMENTS = {
    "kube-apiserver": ["--enable-admission-plugins=NodeRestriction"],
    # Else it looks at each object once a second at most, and a machine takes eight looks to join.
    "cluster-api-core": ["--feature-gates=ReconcilerRateLimiting=false"],
}
CONTROLLERS = (
    "namespace",
    "garbage-collector",
    "disruption",
    "node-lifecycle",
    "taint-eviction",
    "clusterrole-aggregation",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "nodeyard_api" in metafunc.fixturenames:
        servers = ["embedded", pytest.param("real", marks=pytest.mark.real)]
        metafunc.parametrize("nodeyard_api", servers, indirect=True, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One server at a time: everything on the embedded one, then everything on the real one."""
    items.sort(key=lambda item: item.get_closest_marker("real") is not None)


@pytest.fixture(scope="session")
def nodeyard_api(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The API server of this test session, shared: use names of your own."""
    if request.param == "embedded":
        from nodeyard.testing.embedded import EmbeddedServer

        with EmbeddedServer() as server:
            yield server
        return
    from nodeyard.testing.controlplane import ControlPlane

    with ControlPlane(controllers=CONTROLLERS, arguments=ARGUMENTS) as plane:
        yield plane


@pytest.fixture
def nodeyard_kubectl(nodeyard_api: Any) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`kubectl("get", "nodes")` as administrator, or as someone else; fails the test unless `check=False`."""
    from nodeyard.testing.kubectl import find

    program = find()
    home = nodeyard_api.directory / "kubectl-cache"

    def run(
        *arguments: str, stdin: str | None = None, check: bool = True, kubeconfig: Any = None, timeout: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        command = [
            str(program),
            "--kubeconfig",
            str(kubeconfig or nodeyard_api.kubeconfig),
            "--cache-dir",
            str(home),
            *arguments,
        ]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)
        if check and done.returncode != 0:
            pytest.fail(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    return run


@pytest.fixture
def nodeyard_faults(nodeyard_api: Any, request: pytest.FixtureRequest) -> Iterator[FaultProxy]:
    """Between a client and `nodeyard_api`: use its `url`, `authority` and `kubeconfig`. Seeded by the test's name."""
    with FaultProxy(nodeyard_api.url, nodeyard_api.authority.pem, nodeyard_api.admin_token, _seed(request)) as proxy:
        yield proxy


@pytest.fixture
def nodeyard_operator(nodeyard_api: Any) -> Iterator[Any]:
    """`operator("spares", identity="a", ...)`: see `nodeyard.testing.operators`. All of them end with the test."""
    from nodeyard.testing.operators import Operators

    operators = Operators(nodeyard_api, pytest.fail)
    try:
        yield operators
    finally:
        operators.close()


def _seed(request: pytest.FixtureRequest) -> int:
    return zlib.crc32(request.node.nodeid.encode())


@_async_fixture
async def nodeyard_world(nodeyard_api: Any, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """The simulated world on `nodeyard_api`, empty at first. Seeded by the test's name."""
    transport = HttpTransport(load_kubeconfig([nodeyard_api.kubeconfig]), clock=SystemClock())
    client = Client(transport)
    async with World(client, SystemClock(), _seed(request)) as world:
        yield world
    await client.close()


@pytest.fixture(scope="module")
def nodeyard_machines(nodeyard_api: Any) -> Iterator[Any]:
    """See `nodeyard.testing.machines`; not beside `nodeyard_world`, whose kubelets would be played twice."""
    from nodeyard.testing.machines import MachineWorld

    with MachineWorld(nodeyard_api) as machines:
        yield machines


@pytest.fixture
def nodeyard_clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(scope="session")
def nodeyard_eventually() -> Callable[..., Any]:
    """`eventually(condition, what, timeout)`: asks until the answer is true, and returns it."""
    return wait.until


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A failing test on the real control plane shows the end of its logs."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if not report.failed or item.get_closest_marker("real") is None:
        return
    from nodeyard.testing.controlplane import running

    for plane in running():
        report.sections.append(("control plane", plane.logs()))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real: runs on the real control plane, which `make controlplane` builds")
    if os.environ.get("REAL_REQUIRED") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(RealRequired())


class RealRequired:
    """`REAL_REQUIRED=1` makes a run without a single real test a failure: the real part did not run.

    It goes by what is reported, which the process that leads others is told too; those it leads need not judge.
    """

    def __init__(self) -> None:
        self._has_run = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._has_run = self._has_run or (report.when == "call" and "real" in report.keywords)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.OK and not self._has_run:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
