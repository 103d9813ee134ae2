"""Starts the measured API servers in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.load import Target
from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.crds import install
from nodeyard.testing.controlplane import ControlPlane
from nodeyard.testing.ports import free_port


@dataclass(frozen=True)
class RunningServer:
    target: Target
    processes: tuple[int, ...]
    kubeconfig: Path


@contextmanager
def embedded(controllers: str = "*", *, on_disk: bool = False) -> Iterator[RunningServer]:
    """Start `nodeyard apiserver`, as a user does; `on_disk` with `--data-dir`."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = [str(Path(sys.executable).with_name("nodeyard")), "apiserver", "--port", str(free_port())]
        options = ["--kubeconfig-out", str(kubeconfig), "--controllers", controllers]
        if on_disk:
            options += ["--data-dir", str(Path(folder) / "data")]
        process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError("the embedded API server did not become ready")
            yield RunningServer(_target(kubeconfig), (process.pid,), kubeconfig)
        finally:
            process.terminate()
            process.wait(10)


@contextmanager
def real() -> Iterator[RunningServer]:
    """Start kube-apiserver and etcd."""
    with ControlPlane() as plane:
        processes = tuple(plane.components[name].process.pid or 0 for name in ("etcd", "kube-apiserver"))
        yield RunningServer(Target(plane.url, plane.authority.pem, plane.admin_token), processes, plane.kubeconfig)


async def install_crds(server: RunningServer, capability: Capability) -> None:
    client = Client(HttpTransport(load_kubeconfig([server.kubeconfig])))
    try:
        await install(client, [capability], SystemClock())
    finally:
        await client.close()


def memory_mb(processes: Iterable[int]) -> float:
    """Return the resident memory of all processes."""
    total = 0
    for process in processes:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return total / 1024


def cpu_seconds(processes: Iterable[int]) -> float:
    """Return the user and system time of all processes."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _target(kubeconfig: Path) -> Target:
    config = load_kubeconfig([kubeconfig])
    assert config.authority is not None
    return Target(config.server, config.authority.read(), config.credentials.token)
