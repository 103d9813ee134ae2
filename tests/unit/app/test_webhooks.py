"""Webhooks of the operator's process: default addresses, and prerequisites."""

import pytest
import yaml
from tests.builders import labels
from tests.builders.rule_webhooks import GUARDED

from nodeyard.admission.client_config import ByUrl
from nodeyard.app.manifests import config_files
from nodeyard.app.webhooks import is_loopback, local_url


@pytest.mark.parametrize(
    ("host", "server", "url"),
    [
        ("127.0.0.1", "https://127.0.0.1:6443", "https://127.0.0.1:9443"),
        ("localhost", "https://localhost:6443", "https://localhost:9443"),
        ("::1", "https://[::1]:6443", "https://[::1]:9443"),
    ],
)
def test_an_api_server_on_this_machine_is_sent_to_this_machine(host, server, url):
    assert local_url(host, 9443, server) == ByUrl(url)


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("127.0.0.1", "https://10.96.0.1:443"),
        ("127.0.0.1", "https://k8s.example.com"),
        ("0.0.0.0", "https://127.0.0.1"),
    ],
)
def test_an_api_server_elsewhere_is_not_sent_where_nobody_answers(host, server):
    assert local_url(host, 9443, server) is None


def test_this_machine_has_several_names():
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("", "0.0.0.0", "10.0.0.1", "example.com")))


def test_an_install_gets_a_service_where_there_are_webhooks():
    assert not any(path.startswith("webhooks/") for path, _ in config_files([labels.LABELS]))

    service = yaml.safe_load(dict(config_files([GUARDED]))["webhooks/labels.yaml"])

    assert (service["metadata"]["namespace"], service["metadata"]["name"]) == ("nodeyard-system", "nodeyard-labels")
    assert service["spec"]["ports"] == [{"name": "webhooks", "port": 443, "targetPort": 9443}]
    assert service["spec"]["selector"]["nodeyard.dev/labels"] == "true"
