"""Webhook options of `nodeyard run`."""

import pytest

from nodeyard.admission.client_config import ByService, ByUrl
from nodeyard.admission.manager import Webhooks
from nodeyard.cli.failures import Failure
from nodeyard.cli.run import parse_webhooks
from nodeyard.runtime.health import Address


def test_by_default_they_are_served_on_this_machine_alone():
    assert parse_webhooks("127.0.0.1:9443", "", "", None) == Webhooks(Address("127.0.0.1", 9443))
    assert parse_webhooks("0", "", "", None) is None


def test_how_they_are_reached_is_taken_over(tmp_path):
    everywhere = Address("", 9443)

    assert parse_webhooks(":9443", "", "a/b", tmp_path) == Webhooks(everywhere, ByService("a", "b"), tmp_path)
    assert parse_webhooks(":9443", "https://a:1", "", None) == Webhooks(everywhere, ByUrl("https://a:1"))


@pytest.mark.parametrize(
    ("bind", "url", "service", "message"),
    [
        ("x", "", "", '--webhook-bind: "x" is not a valid address'),
        (":9443", "", "", "--webhook-bind :9443: also give --webhook-service or --webhook-url"),
        (":9443", "http://a", "", '--webhook-url: "http://a" is not a webhook URL'),
        (":9443", "", "a", '--webhook-service: "a" is not a Service'),
        (":9443", "https://a", "b/c", "--webhook-url and --webhook-service: give only one of them"),
    ],
)
def test_options_that_cannot_work_are_refused_at_once(bind, url, service, message):
    with pytest.raises(Failure) as failed:
        parse_webhooks(bind, url, service, None)

    assert str(failed.value).startswith(message)


def test_a_missing_certificate_folder_is_named(tmp_path):
    with pytest.raises(Failure, match=r"--webhook-cert-dir: .*missing is not a directory"):
        parse_webhooks("127.0.0.1:9443", "", "", tmp_path / "missing")
