"""In-cluster configuration of a pod."""

import pytest

from nodeyard.client.config import is_in_cluster, load_in_cluster
from nodeyard.client.errors import ConfigError

ENV = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path):
    for name, text in (("token", "t"), ("ca.crt", "pem"), ("namespace", "prod\n")):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_address_token_ca_and_namespace_are_found(account):
    config = load_in_cluster(ENV, account)
    assert (config.server, config.namespace) == ("https://10.0.0.1:443", "prod")
    assert config.credentials.token_file == account / "token"
    assert config.authority.read() == b"pem"
    assert is_in_cluster(ENV, account)


def test_an_ipv6_address_is_bracketed(account):
    assert load_in_cluster({**ENV, "KUBERNETES_SERVICE_HOST": "fd00::1"}, account).server == "https://[fd00::1]:443"


def test_outside_a_cluster_the_error_says_what_to_do(account):
    assert not is_in_cluster({}, account)
    with pytest.raises(ConfigError, match="pass a kubeconfig"):
        load_in_cluster({}, account)


def test_a_pod_without_a_token_gets_the_reason(tmp_path):
    assert not is_in_cluster(ENV, tmp_path)
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        load_in_cluster(ENV, tmp_path)
