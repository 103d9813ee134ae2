"""`nodeyard demo` on both servers: converges, shows the fleet, and can be looked at while it stays."""

import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import NODES

PROGRAM = [sys.executable, "-c", "from nodeyard.cli import main; main()", "demo"]
POOLED = 15
"""Nodes of the clusters in the example: control planes and workers."""
MIRRORED = 3
"""Nodes that mirror the leaf clusters of the examples."""
EXAMPLE_NODES = POOLED + MIRRORED
RELEASED = 5
"""Pods of the examples' applications."""
SERVERS = [pytest.param((), id="embedded"), pytest.param(("--real",), id="real", marks=pytest.mark.real)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("server", SERVERS)
def test_once_converges_and_shows_the_fleet(server):
    # On the real one a control plane of its own comes up first, beside those of the other tests.
    done = subprocess.run(
        [*PROGRAM, "--once", "--nodes", "6", *server], capture_output=True, text=True, timeout=280, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    total = next(line for line in done.stdout.splitlines() if line.startswith(" all "))
    nodes, ready, _workers, spare, mirrors, pods, _leases = map(int, re.findall(r"\d+", total))
    assert (nodes, ready, spare, mirrors, pods) == (6 + EXAMPLE_NODES, 6 + EXAMPLE_NODES, 0, MIRRORED, 4 + RELEASED)
    assert re.search(r"kosmos-east +east +yes +19 +80Gi", done.stdout)
    assert re.search(rf"{nodes} nodes and {4 + RELEASED} pods on the (embedded|real) .* in \d+\.\d s", done.stdout)
    # Six nodes have too few spares for the template, and no pool of the example matches one of its services.
    not_ok = re.findall(r"^   (\S+) +no ", done.stdout, re.MULTILINE)
    assert not_ok == ["nodetemplate/compute", "latticeservice/inference"]
    assert max(len(line.rstrip()) for line in done.stdout.splitlines()) <= 80


@contextmanager
def running_demo(*arguments):
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def output_until_next_steps(process):
    """Read the output up to the last line before it waits."""
    lines = []
    while not lines or "nodeyard plan" not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], "".join(lines)
    return "".join(lines)


async def test_it_runs_until_it_is_stopped_and_prints_how_to_look_at_it():
    with running_demo("--nodes", "2") as process:
        text = output_until_next_steps(process)
        client = Client(HttpTransport(load_config(re.search(r"KUBECONFIG=(\S+)", text)[1])))
        assert len((await client.list(NODES)).items) == 2 + EXAMPLE_NODES
        await client.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    assert len(re.findall(r"^  (?:kubectl|nodeyard) ", text, re.MULTILINE)) == 3


def test_without_the_real_control_plane_one_line_says_how_to_get_it(tmp_path):
    nothing = {"NODEYARD_ASSETS": str(tmp_path), "PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [*PROGRAM, "--once", "--real"], capture_output=True, text=True, timeout=60, env=nothing, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("nodeyard: ")
    assert "run `make controlplane`" in done.stderr
    assert done.stderr.count("\n") == 1
