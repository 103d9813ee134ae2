"""`nodeyard demo` on both servers: the tour, the summary, and the commands that it offers."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest

PROGRAM = [sys.executable, "-c", "from nodeyard.cli import main; main()", "demo"]
POOLED = 10
"""Nodes of the clusters in the example after the tour, which removes a pool of 3 and 2 of 3 control planes."""
MIRRORED = 3
"""Nodes that mirror the leaf clusters of the examples."""
EXAMPLE_NODES = POOLED + MIRRORED
RELEASED = 5
"""Pods of the examples' applications."""
FAILED = 1
LAST = "plan"
"""The command that is printed last."""
SERVERS = [pytest.param((), id="embedded"), pytest.param(("--real",), id="real", marks=pytest.mark.real)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("server", SERVERS)
def test_once_converges_and_shows_the_fleet(server):
    # On the real one, the demo starts a control plane of its own beside those of other tests.
    done = subprocess.run(
        [*PROGRAM, "--once", "--nodes", "6", *server], capture_output=True, text=True, timeout=280, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    total = next(line for line in done.stdout.splitlines() if line.startswith("all "))
    nodes, ready, _workers, spare, mirrors, pods, _leases = map(int, re.findall(r"\d+", total))
    wanted = 6 + EXAMPLE_NODES
    assert (nodes, ready, spare, mirrors, pods) == (wanted, wanted - FAILED, 0, MIRRORED, 4 + RELEASED)
    assert re.search(r"kosmos-east +east +yes +19 +80Gi", done.stdout)
    assert re.search(rf"{nodes} nodes and {4 + RELEASED} pods on the (embedded|real) .* in \d+\.\d s", done.stdout)
    summary = done.stdout[done.stdout.index("Not fine: ") :].splitlines()
    # Six nodes have too few spares for the template, and no pool of the example matches one of its services.
    not_fine = [line.split()[0] for line in summary[1 : summary.index("")]]
    assert not_fine[:2] == ["nodetemplate/compute", "latticeservice/inference"]
    assert [each.partition("/")[0] for each in not_fine[2:]] == ["node"]
    assert len(summary) <= 25
    assert "The demo approves it by itself" in done.stdout
    lines = [line.rstrip() for line in done.stdout.splitlines() if "KUBECONFIG=/" not in line]
    assert max(map(len, lines)) <= 80


@contextmanager
def running_demo(*arguments):
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def paste(command):
    """Run a printed line in a shell that knows neither the demo's directory nor its environment."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=120, check=False, cwd="/", env=environment
    )
    assert (done.returncode, done.stderr) == (0, ""), command
    assert done.stdout.strip(), command


def open_dashboard(address):
    """Open the printed address as a browser does: it signs in by a cookie."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(address, timeout=60) as answer:
        assert (answer.status, answer.headers.get_content_type()) == (200, "text/html")
    with browser.open(f"{address.partition('?')[0]}api/v1/snapshot", timeout=60) as answer:
        assert json.load(answer)["viewer"]["canApprove"]


@pytest.mark.timeout(600)
def test_every_printed_command_works_when_pasted_and_the_tour_waits_for_the_approval():
    pasted = []
    with running_demo("--nodes", "6") as process:
        for line in process.stdout:
            if line.startswith("Dashboard: "):
                assert not pasted
                open_dashboard(line.split()[1])
            if line.strip().startswith("KUBECONFIG="):
                paste(line.strip())
                pasted.append(line.split()[2:])
            if pasted and pasted[-1][0] == LAST:
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    verbs = [each[0] for each in pasted]
    # Listed, then approved by the test.
    assert verbs.count("approve") == 2
    assert {"why", "status", "plan"} <= set(verbs)


def test_it_ends_at_once_in_the_middle_of_the_tour():
    with running_demo("--nodes", "2") as process:
        for line in process.stdout:
            if line.startswith("1. "):
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == ""


def test_without_the_real_control_plane_one_line_says_how_to_get_it(tmp_path):
    nothing = {"NODEYARD_ASSETS": str(tmp_path), "PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [*PROGRAM, "--once", "--real"], capture_output=True, text=True, timeout=60, env=nothing, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("nodeyard: ")
    assert "run `make controlplane`" in done.stderr
    assert done.stderr.count("\n") == 1
