"""The clientConfig of the webhooks, from an option's text."""

import base64

import pytest

from nodeyard.admission.client_config import ByService, ByUrl, ReachError, parse_service, parse_url


@pytest.mark.parametrize(
    ("text", "base", "host"),
    [
        ("https://10.0.0.5:9443", "https://10.0.0.5:9443", "10.0.0.5"),
        ("https://hooks.example.com/", "https://hooks.example.com", "hooks.example.com"),
        ("https://[::1]:9443", "https://[::1]:9443", "::1"),
    ],
)
def test_a_url_leads_to_a_host(text, base, host):
    reach = parse_url(text)

    assert (reach.base, reach.host) == (base, host)


@pytest.mark.parametrize(
    "text",
    ["", "10.0.0.5:9443", "http://a:1", "https://", "https://a/b", "https://a?b=c", "https://a:x", "https://u@a"],
)
def test_invalid_webhook_urls_are_refused(text):
    with pytest.raises(ReachError, match="https://HOST:PORT"):
        parse_url(text)


def test_a_service_is_named_with_its_namespace():
    assert parse_service("nodeyard-system/nodeyard-pools") == ByService("nodeyard-system", "nodeyard-pools", 443)
    assert parse_service("a/b:9443") == ByService("a", "b", 9443)
    assert parse_service("a/b").host == "b.a.svc"


@pytest.mark.parametrize("text", ["", "a", "a/", "/b", "a/b:", "a/b:0", "a/b:x", "A/b", "a/b/c"])
def test_invalid_service_references_are_refused(text):
    with pytest.raises(ReachError, match="NAMESPACE/NAME"):
        parse_service(text)


def test_the_path_and_the_bundle_stand_in_the_client_configuration():
    trust = {"caBundle": base64.b64encode(b"ca").decode()}

    assert ByUrl("https://a:1").client_config("/p", b"ca") == {"url": "https://a:1/p", **trust}
    assert ByService("ns", "n").client_config("/p", b"ca") == {
        "service": {"namespace": "ns", "name": "n", "port": 443, "path": "/p"},
        **trust,
    }
    assert ByUrl("https://a:1").client_config("/p", b"") == {"url": "https://a:1/p"}
