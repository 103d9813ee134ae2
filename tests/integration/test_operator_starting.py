"""`nodeyard run` as a process on a cluster that it cannot use: messages, and how often each is logged."""

import json
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
import yaml

from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.faults import FaultProxy, Status

PROGRAM = [sys.executable, "-c", "from nodeyard.cli import main; main()"]
SPARES = ("--capabilities", "spares", "--health-bind", "0", "--metrics-bind", "0")


@pytest.fixture(scope="module")
def server():
    with EmbeddedServer(controllers=()) as server:
        yield server


@contextmanager
def running(kubeconfig, *arguments):
    command = [*PROGRAM, "run", "--kubeconfig", str(kubeconfig), *SPARES, *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def lines_until(process, message):
    """Return the log up to a message."""
    found = []
    for text in process.stderr:
        found.append(json.loads(text))
        if found[-1]["message"] == message:
            break
    return found


def test_missing_kinds_are_named_in_one_line_after_the_context_that_is_written_to(server):
    context = yaml.safe_load(server.kubeconfig.read_text())["current-context"]
    with running(server.kubeconfig) as process:
        lines = lines_until(process, "kinds not served")
    first, last = lines[0], lines[-1]
    assert (first["message"], first["mode"]) == ("operator starting", "write")
    assert first["cluster"] == f"{server.kubeconfig}, context {context}"
    assert last["kinds"] == ["nodetemplates.nyallocator.cybozu.io"]
    assert "--install-crds" in last["remedy"]
    assert [line for line in lines if line["level"] == "warning"] == [last]


@pytest.mark.parametrize("options", [(), ("--install-crds",)], ids=["plain", "installing"])
def test_rejected_credentials_are_reported_in_one_line_however_often_it_is_retried(server, eventually, options):
    with FaultProxy(server.url, server.authority.pem, server.admin_token) as faults:
        refused = faults.add(Status(401))
        with running(faults.kubeconfig, *options) as process:
            lines = lines_until(process, "credentials rejected")
            tried = refused.hits
            eventually(lambda: refused.hits >= tried + 6, "it is tried again")
            process.kill()
            lines += [json.loads(text) for text in process.stderr]
    (warning,) = [line for line in lines if line["level"] == "warning"]
    assert warning["message"] == "credentials rejected"
    assert "renew the token" in warning["remedy"]


def test_an_unreachable_server_is_reported_with_its_address_and_the_remedy(server, tmp_path):
    config = yaml.safe_load(server.kubeconfig.read_text())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{free.getsockname()[1]}"
    config["clusters"][0]["cluster"]["server"] = f"https://{where}"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    with running(path, "--install-crds") as process:
        lines = lines_until(process, "server unreachable")
    assert where in lines[-1]["reason"]
    assert "kubeconfig" in lines[-1]["remedy"]
    assert [line["level"] for line in lines[:-1]] == ["info"] * (len(lines) - 1)


def test_an_address_in_use_names_the_option(server):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        with running(server.kubeconfig, "--health-bind", where) as process:
            *_, said = process.stderr.read().splitlines()
            process.wait(timeout=30)
    assert process.returncode == 1
    assert said == (
        f"nodeyard: cannot listen on {where}: Address already in use; "
        "set another address with --health-bind, or 0 to disable it"
    )
