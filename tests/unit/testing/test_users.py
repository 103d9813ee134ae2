"""Users of a control plane: their kubeconfigs, tokens and names."""

from __future__ import annotations

import base64
import csv
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeyard.apiserver import kubeconfig
from nodeyard.process.certificates import Authority
from nodeyard.testing import users


def test_a_kubeconfig_with_a_token_is_valid_yaml_only_the_owner_can_read(tmp_path: Path) -> None:
    path = kubeconfig.write(tmp_path / "users" / "a", kubeconfig.with_token("https://127.0.0.1:1", b"CA", "secret"))
    config = yaml.safe_load(path.read_text())
    (context,) = config["contexts"]
    assert config["current-context"] == context["name"]
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    assert config["users"][0]["user"] == {"token": "secret"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_kubeconfig_with_a_certificate_holds_the_pair() -> None:
    pair = Authority().client("alice", ["dev"])
    user = kubeconfig.with_certificate("https://127.0.0.1:1", b"CA", pair)["users"][0]["user"]
    assert base64.b64decode(user["client-certificate-data"]) == pair.certificate
    assert base64.b64decode(user["client-key-data"]) == pair.key


def test_the_token_table_is_what_kube_apiserver_reads() -> None:
    table = users.token_table({"t1": ("alice", ("dev", "ops")), "t2": ("bob", ())})
    assert list(csv.reader(table.splitlines())) == [["t1", "alice", "alice", "dev,ops"], ["t2", "bob", "bob", ""]]


@pytest.mark.parametrize("user", ["alice", "alice@example.com", "nodeyard-spares"])
def test_a_plain_user_name_is_its_file_name(user: str) -> None:
    assert users.file_name(user) == user


def test_users_that_would_share_a_file_do_not() -> None:
    names = ["system:node:n1", "system/node/n1", "system_node_n1"]
    files = {users.file_name(name) for name in names}
    assert len(files) == 3
    assert not any("/" in file for file in files)


class Recorder:
    """Fake API server that sees created roles a moment later."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []

    def call(self, _method: str, _path: str, review: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(review["spec"])
        return {"status": {"allowed": len(self.asked) > 1}}

    def replace_or_create(self, obj: dict[str, Any]) -> None:
        self.objects.append(obj)


@pytest.mark.parametrize(("namespace", "kind"), [(None, "ClusterRole"), ("team", "Role")])
def test_rules_become_a_role_and_its_binding(namespace: str | None, kind: str) -> None:
    rest = Recorder()
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    users.grant(rest, "alice", rules, namespace)  # type: ignore[arg-type]
    role, binding = rest.objects
    assert (role["kind"], binding["kind"]) == (kind, f"{kind}Binding")
    assert role["rules"] == rules
    assert role["metadata"].get("namespace") == namespace
    assert binding["roleRef"] == {"apiGroup": users.RBAC, "kind": kind, "name": role["metadata"]["name"]}
    assert binding["subjects"][0]["name"] == "alice"
    assert rest.asked[-1]["user"] == "alice"
    attributes = rest.asked[-1]["resourceAttributes"]
    assert (attributes["verb"], attributes["resource"], attributes["namespace"]) == ("get", "pods", namespace or "")
    assert len(rest.asked) == 2
