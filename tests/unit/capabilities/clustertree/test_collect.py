"""Sources of a leaf's kubeconfig, and refused ones; errors never quote the content."""

from __future__ import annotations

import json
from base64 import b64encode

import msgspec
import pytest
from tests.builders.remote_clusters import exec_kubeconfig

from nodeyard.capabilities.clustertree.collect import kubeconfig_of
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.objects import Secret

GOOD = json.dumps(
    {
        "clusters": [{"name": "c", "cluster": {"server": "https://leaf.example:6443"}}],
        "users": [{"name": "u", "user": {"token": "s3cret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
)


class Secrets:
    """A view with only some Secrets."""

    def __init__(self, **data):
        self._data = data

    already_approved = True

    def is_synced(self, _kind):
        return self.already_approved

    def watch_error(self, kind):
        return "" if self.already_approved else f"cannot list {kind}: forbidden: no"

    def get(self, kind, name, namespace):
        assert kind == f"Secret@{namespace}"
        found = self._data.get(f"{namespace}_{name}".replace("-", "_"))
        return None if found is None else Secret(data=found)


def cluster(**spec):
    return msgspec.convert({"metadata": {"name": "east"}, "spec": spec}, Cluster)


def encoded(text):
    return b64encode(text.encode()).decode()


def test_a_cluster_without_a_kubeconfig_has_none():
    found = kubeconfig_of(Secrets(), cluster())

    assert (found.is_given, found.content, found.error) == (False, b"", "")


@pytest.mark.parametrize("text", ["", "\n", "  \n"])
def test_an_empty_kubeconfig_is_reported(text):
    secrets = Secrets(nodeyard_system_way={"kubeconfig": encoded(text)})

    found = kubeconfig_of(secrets, cluster(kubeconfigSecretRef={"name": "way"}))

    assert (found.is_given, found.content) == (True, b"")
    assert found.error == "Secret nodeyard-system/way, kubeconfig: is empty"


def test_a_namespace_that_is_not_granted_is_reported_with_the_remedy():
    secrets = Secrets()
    secrets.already_approved = False

    found = kubeconfig_of(secrets, cluster(kubeconfigSecretRef={"name": "way", "namespace": "leaves"}))

    assert found.is_missing
    assert "add leaves to namespaceGrants.clustertree.kubeconfigs" in found.error


def test_the_kubeconfig_may_be_in_the_cluster():
    assert kubeconfig_of(Secrets(), cluster(kubeconfig=encoded(GOOD))).content == GOOD.encode()


def test_a_secret_counts_over_the_kubeconfig_in_the_cluster():
    secrets = Secrets(nodeyard_system_way={"kubeconfig": encoded(GOOD)})
    given = cluster(kubeconfig=encoded("other"), kubeconfigSecretRef={"name": "way"})

    assert kubeconfig_of(secrets, given).content == GOOD.encode()


def test_namespace_and_key_may_be_others():
    secrets = Secrets(leaves_way={"config": encoded(GOOD)})
    given = cluster(kubeconfigSecretRef={"namespace": "leaves", "name": "way", "key": "config"})

    assert kubeconfig_of(secrets, given).content == GOOD.encode()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "Secret nodeyard-system/way does not exist, or lacks the label nodeyard.dev/leaf-kubeconfig=true"),
        ({"other": "eA=="}, "Secret nodeyard-system/way has no key kubeconfig"),
    ],
    ids=["no-secret", "no-key"],
)
def test_a_secret_that_cannot_be_read_from_is_missing(data, says):
    secrets = Secrets() if data is None else Secrets(nodeyard_system_way=data)
    found = kubeconfig_of(secrets, cluster(kubeconfigSecretRef={"name": "way"}))

    assert (found.is_given, found.is_missing, found.error, found.content) == (True, True, says, b"")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (encoded(exec_kubeconfig("https://leaf.example", "s3cret")), "commands are not allowed"),
        (encoded(GOOD.replace('"token": "s3cret"', '"tokenFile": "/etc/s3cret"')), "tokenFile"),
        (encoded(GOOD.replace('"server"', '"proxy-url": "http://s3cret", "server"')), "proxy-url"),
        (encoded("no: {kubeconfig"), "spec.kubeconfig"),
        ("%%%", "spec.kubeconfig: is not base64"),
    ],
    ids=["exec", "file", "proxy", "no-yaml", "no-base64"],
)
def test_unsafe_or_invalid_kubeconfigs_are_refused_unquoted(text, says):
    found = kubeconfig_of(Secrets(), cluster(kubeconfig=text))

    assert says in found.error
    assert found.content == b""
    assert "http://s3cret" not in found.error
    assert "s3cret" not in repr(found).replace("/etc/s3cret", "")
