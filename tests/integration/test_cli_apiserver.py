"""`nodeyard apiserver` as a process: output, kubeconfig and signals."""

import base64
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import contextmanager

import pytest
import yaml

from nodeyard.client import errors
from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import NAMESPACES, NODES

PROGRAM = [sys.executable, "-c", "from nodeyard.cli import main; main()"]


@contextmanager
def started(*arguments):
    process = subprocess.Popen(
        [*PROGRAM, "apiserver", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def refused(*arguments, **environment):
    done = subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 1
    return done.stderr


async def test_it_says_ready_serves_and_ends_on_sigterm(tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    with started("--port", "0", "--kubeconfig-out", str(kubeconfig)) as process:
        assert process.stdout.readline() == "ready\n"
        client = Client(HttpTransport(load_config(kubeconfig)))
        names = [item["metadata"]["name"] for item in (await client.list(NAMESPACES)).items]
        await client.close()
        process.send_signal(signal.SIGTERM)
        _, complaint = process.communicate(timeout=30)
    assert "kube-system" in names
    assert (process.returncode, complaint) == (0, "")


async def test_users_of_a_file_come_in_with_their_rights(tmp_path):
    kubeconfig, users = tmp_path / "kubeconfig", tmp_path / "users.yaml"
    users.write_text(
        "users:\n- name: alice\n  token: hers\n  rules:\n  - {apiGroups: [''], resources: [nodes], verbs: [list]}\n"
    )
    with started("--port", "0", "--kubeconfig-out", str(kubeconfig), "--users", str(users)) as process:
        assert process.stdout.readline() == "ready\n"
        admin = load_config(kubeconfig)
        text = kubeconfig.read_text().replace(admin.credentials.token, "hers")
        kubeconfig.write_text(text)
        alice = Client(HttpTransport(load_config(kubeconfig)))
        assert (await alice.list(NODES)).items == []
        with pytest.raises(errors.Forbidden, match='User "alice" cannot list resource "namespaces"'):
            await alice.list(NAMESPACES)
        await alice.close()


async def test_every_request_is_put_on_record_if_so_asked(tmp_path):
    kubeconfig, log = tmp_path / "kubeconfig", tmp_path / "audit.log"
    with started("--port", "0", "--kubeconfig-out", str(kubeconfig), "--audit-log-path", str(log)) as process:
        assert process.stdout.readline() == "ready\n"
        client = Client(HttpTransport(load_config(kubeconfig)))
        await client.list(NODES)
        await client.close()
    (event,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert (event["verb"], event["requestURI"], event["user"]["username"]) == (
        "list",
        "/api/v1/nodes?limit=500",
        "admin",
    )
    assert event["responseStatus"]["code"] == 200


def test_a_record_that_cannot_be_kept_is_one_clear_line(tmp_path):
    log = tmp_path / "missing" / "audit.log"
    complaint = refused(
        "apiserver", "--port", "0", "--kubeconfig-out", str(tmp_path / "kc"), "--audit-log-path", str(log)
    )
    assert complaint == f"nodeyard: --audit-log-path: {log}: No such file or directory\n"


def test_a_port_that_is_taken_is_one_clear_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        complaint = refused("apiserver", "--port", port, "--kubeconfig-out", str(tmp_path / "kc"))
    assert complaint == f"nodeyard: port {port} on 127.0.0.1 is taken; choose another with --port\n"


def test_an_unknown_controller_is_one_clear_line(tmp_path):
    complaint = refused("apiserver", "--port", "0", "--kubeconfig-out", str(tmp_path / "kc"), "--controllers", "magic")
    assert complaint.startswith('nodeyard: --controllers: "magic" is not in the list of known controllers: ')
    assert complaint.count("\n") == 1


def test_a_faulty_user_file_is_one_clear_line(tmp_path):
    users = tmp_path / "users.yaml"
    users.write_text("users:\n- name: alice\n")
    complaint = refused("apiserver", "--port", "0", "--kubeconfig-out", str(tmp_path / "kc"), "--users", str(users))
    assert complaint.startswith(f"nodeyard: --users: {users}: ")
    assert complaint.count("\n") == 1


def test_a_server_on_all_addresses_is_trusted_by_all_names_of_the_machine(tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    with started("--port", "0", "--bind", "0.0.0.0", "--kubeconfig-out", str(kubeconfig)) as process:
        assert process.stdout.readline() == "ready\n"
        config = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
        trusted = base64.b64decode(config["certificate-authority-data"]).decode()
        port = int(config["server"].rpartition(":")[2])
        context = ssl.create_default_context(cadata=trusted)
        addresses = {entry[4][0] for entry in socket.getaddrinfo(socket.gethostname(), port, type=socket.SOCK_STREAM)}
        for name in ("127.0.0.1", "localhost", socket.gethostname(), *addresses):
            with socket.create_connection(("127.0.0.1", port)) as plain:
                context.wrap_socket(plain, server_hostname=name).close()
