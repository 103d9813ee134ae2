"""The real control plane: readiness, users, restarts and kills."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeyard.process.certificates import Authority
from nodeyard.testing import ControlPlane, clients, versions
from nodeyard.testing.component import ComponentError
from nodeyard.testing.controlplane import running
from nodeyard.testing.rest import Rest, RestError

pytestmark = pytest.mark.real

READ_NODES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}]
READ_PODS = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(tokens={"alice-token": ("alice", ["dev"])}) as plane:
        yield plane


def run(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [clients.find("kubectl"), "--kubeconfig", kubeconfig, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_it_is_the_version_that_was_asked_for(plane: ControlPlane) -> None:
    assert plane.rest.get("/version")["gitVersion"] == versions.kubernetes()


def test_kubectl_works_with_its_kubeconfig(plane: ControlPlane) -> None:
    done = run(plane.kubeconfig, "get", "namespaces", "--output=name")
    assert "namespace/default" in done.stdout.split()


def test_the_kubeconfig_is_the_same_as_file_and_as_dict(plane: ControlPlane) -> None:
    assert yaml.safe_load(plane.kubeconfig.read_text()) == plane.config


def test_it_serves_under_its_own_authority_only(plane: ControlPlane) -> None:
    stranger = Rest(plane.url, Authority().pem, plane.admin_token)
    assert stranger.status("/readyz") == 0
    assert plane.rest.status("/readyz") == 200


def test_a_user_has_exactly_the_rights_of_its_rules(plane: ControlPlane) -> None:
    alice = plane.user("reader", rules=READ_NODES)
    assert run(alice, "get", "nodes").returncode == 0
    refused = run(alice, "get", "pods")
    assert 'User "reader" cannot list resource "pods"' in refused.stderr


def test_rules_can_be_for_one_namespace(plane: ControlPlane) -> None:
    user = plane.user("local", rules=READ_PODS, namespace="kube-system")
    assert run(user, "get", "pods", "--namespace=kube-system").returncode == 0
    assert run(user, "get", "pods", "--namespace=default").returncode == 1


def test_new_rules_replace_the_old_ones(plane: ControlPlane) -> None:
    plane.user("mover", rules=READ_NODES)
    user = plane.user("mover", rules=READ_PODS)
    assert run(user, "get", "pods").returncode == 0
    assert run(user, "get", "nodes").returncode == 1


def test_groups_come_with_the_certificate(plane: ControlPlane) -> None:
    user = plane.user("system:someone", groups=["ops", "system:masters"])
    who = run(user, "auth", "whoami", "--output=json")
    info = yaml.safe_load(who.stdout)["status"]["userInfo"]
    assert info["username"] == "system:someone"
    assert set(info["groups"]) == {"ops", "system:masters", "system:authenticated"}


def test_users_can_have_tokens(plane: ControlPlane) -> None:
    alice = Rest(plane.url, plane.authority.pem, "alice-token")
    with pytest.raises(RestError, match='User "alice" cannot list resource "nodes"'):
        alice.get("/api/v1/nodes")


def test_data_survives_kill_9_and_a_restart_on_the_same_address(plane: ControlPlane) -> None:
    plane.rest.create(config_map("kept", key="value"))
    url = plane.url
    plane.kill()
    assert plane.rest.status("/readyz") == 0
    plane.start()
    assert plane.url == url
    assert plane.rest.get("/api/v1/namespaces/default/configmaps/kept")["data"] == {"key": "value"}


def test_data_survives_an_orderly_stop(plane: ControlPlane) -> None:
    plane.rest.create(config_map("kept-in-order"))
    plane.stop()
    assert not any(part.process.is_alive() for part in plane.components.values())
    plane.start()
    assert plane.rest.status("/api/v1/namespaces/default/configmaps/kept-in-order") == 200


def test_one_part_can_be_killed_alone(plane: ControlPlane) -> None:
    etcd = plane.components["etcd"].process.pid
    plane.kill("kube-apiserver")
    assert plane.components["etcd"].process.is_alive()
    plane.start()
    assert plane.components["etcd"].process.pid == etcd
    assert plane.rest.status("/readyz") == 200


def test_a_part_that_does_not_run_here_cannot_be_killed(plane: ControlPlane) -> None:
    with pytest.raises(KeyError, match="kwok: no such component; there are etcd, kube-apiserver"):
        plane.kill("kwok")


def test_its_logs_are_there_to_be_shown(plane: ControlPlane) -> None:
    assert plane in running()
    logs = plane.logs(lines=5)
    assert "==> etcd\n" in logs
    assert "==> kube-apiserver\n" in logs
    assert len(logs.splitlines()) <= 2 * 6 + 2


def test_two_control_planes_run_side_by_side_independently(plane: ControlPlane) -> None:
    with ControlPlane() as leaf:
        assert leaf.url != plane.url
        leaf.rest.create(config_map("only-here"))
        assert leaf.rest.status("/api/v1/namespaces/default/configmaps/only-here") == 200
        assert plane.rest.status("/api/v1/namespaces/default/configmaps/only-here") == 404
    assert leaf not in running()
    assert not leaf.directory.exists()


def test_a_given_directory_is_kept_for_another_day(tmp_path: Path) -> None:
    with ControlPlane(directory=tmp_path) as first:
        first.rest.create(config_map("kept"))
    with ControlPlane(directory=tmp_path, fsync=True) as second:
        assert second.rest.status("/api/v1/namespaces/default/configmaps/kept") == 200
    assert (tmp_path / "logs" / "kube-apiserver.log").exists()


def test_a_flag_it_does_not_know_is_an_error_with_the_end_of_the_log(tmp_path: Path) -> None:
    plane = ControlPlane(directory=tmp_path, arguments={"kube-apiserver": ["--nonsense"]})
    with pytest.raises(ComponentError, match=r"kube-apiserver ended with exit code 1(?s:.)*unknown flag: --nonsense"):
        plane.start()
    assert not any(part.process.is_alive() for part in plane.components.values())
    plane.close()
