"""pytest plugin: fixtures for tests of Nodeyard or of any other operator.

Opt-in: `pytest -p nodeyard.testing.plugin`, or `pytest_plugins = ["nodeyard.testing.plugin"]` in the topmost
conftest.py.

    nodeyard_api         an API server: a test runs on the embedded one and, marked `real`, on kube-apiserver
    nodeyard_kubectl     kubectl for it, as administrator
    nodeyard_clock       a virtual clock
    nodeyard_eventually  polls until a condition is true
    nodeyard_world       simulated nodes and pods on it
    nodeyard_machines    Cluster API on it, with simulated machines that become nodes
    nodeyard_faults      a proxy in front of it that injects faults, with a seed
    nodeyard_operator    starts an operator against it, as a user with its generated role

Tests on the real control plane are marked `real`: deselect with `-m "not real"`, select with `-m real`.
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
    # In strict mode pytest-asyncio accepts no other async fixtures.
    from pytest_asyncio import fixture as _async_fixture
except ImportError:
    _async_fixture = pytest.fixture  # type: ignore[assignment]

ARGUMENTS = {
    "kube-apiserver": ["--enable-admission-plugins=NodeRestriction"],
    # Rate limiting reconciles each object at most once a second, and a machine needs eight reconciles to join.
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
    """Run all tests on the embedded server first, then those on the real one."""
    items.sort(key=lambda item: item.get_closest_marker("real") is not None)


@pytest.fixture(scope="session")
def nodeyard_api(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return the API server of the session, which all tests share: use unique names."""
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
    """Return a function that runs kubectl: `kubectl("get", "nodes")`. An error fails the test unless `check=False`."""
    from nodeyard.testing import clients

    program = clients.find("kubectl")
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
    """Return a proxy in front of `nodeyard_api` (`url`, `authority`, `kubeconfig`), seeded by the test's name."""
    with FaultProxy(nodeyard_api.url, nodeyard_api.authority.pem, nodeyard_api.admin_token, _seed(request)) as proxy:
        yield proxy


@pytest.fixture
def nodeyard_operator(nodeyard_api: Any) -> Iterator[Any]:
    """Return a function that starts an operator, `operator("spares", identity="a")`; it ends with the test."""
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
    """Return an empty simulated world on `nodeyard_api`, seeded by the test's name."""
    transport = HttpTransport(load_kubeconfig([nodeyard_api.kubeconfig]), clock=SystemClock())
    client = Client(transport)
    async with World(client, SystemClock(), _seed(request)) as world:
        yield world
    await client.close()


@pytest.fixture(scope="module")
def nodeyard_machines(nodeyard_api: Any) -> Iterator[Any]:
    """Return simulated machines (`nodeyard.testing.machines`). Do not combine with `nodeyard_world`."""
    from nodeyard.testing.machines import MachineWorld

    with MachineWorld(nodeyard_api) as machines:
        yield machines


@pytest.fixture
def nodeyard_clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(scope="session")
def nodeyard_eventually() -> Callable[..., Any]:
    """Return a function that polls until a condition is true: `eventually(condition, what, timeout)`."""
    return wait.until


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Show the end of the control plane's logs for a failing test."""
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
    """With `REAL_REQUIRED=1` a run without a real test fails.

    It counts reports, which the controller of pytest-xdist receives as well; workers do not check.
    """

    def __init__(self) -> None:
        self._has_run = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._has_run = self._has_run or (report.when == "call" and "real" in report.keywords)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.OK and not self._has_run:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
