"""The servers that are measured, each in processes of its own."""

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
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.testing.controlplane import ControlPlane
from nodeyard.testing.ports import free_port


@dataclass(frozen=True)
class Running:
    target: Target
    processes: tuple[int, ...]
    kubeconfig: Path


@contextmanager
def embedded(controllers: str = "*") -> Iterator[Running]:
    """`nodeyard apiserver`, as a user starts it."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = [Path(sys.executable).with_name("nodeyard"), "apiserver", "--port", str(free_port())]
        options = ["--kubeconfig-out", kubeconfig, "--controllers", controllers]
        process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError("the embedded API server did not become ready")
            yield Running(_target(kubeconfig), (process.pid,), kubeconfig)
        finally:
            process.terminate()
            process.wait(10)


@contextmanager
def real() -> Iterator[Running]:
    """kube-apiserver and its etcd."""
    with ControlPlane() as plane:
        processes = tuple(plane.components[name].process.pid for name in ("etcd", "kube-apiserver"))
        yield Running(Target(plane.url, plane.authority.pem, plane.admin_token), processes, plane.kubeconfig)


def memory_mb(processes: Iterable[int]) -> float:
    """Resident memory of all of them."""
    total = 0
    for process in processes:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return total / 1024


def cpu_seconds(processes: Iterable[int]) -> float:
    """What all of them have used so far, in user and in system mode."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _target(kubeconfig: Path) -> Target:
    config = load_kubeconfig([kubeconfig])
    assert config.authority is not None
    return Target(config.server, config.authority.read(), config.credentials.token)
