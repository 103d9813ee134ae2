"""Errors about invalid TLS material."""

import pytest
import trustme

from nodeyard.client.credentials import Identity
from nodeyard.client.errors import ConfigError
from nodeyard.client.tls import client_context


def test_an_authority_that_is_no_certificate_is_named():
    for text in (b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n"):
        with pytest.raises(ConfigError, match="certificate-authority: contains no PEM certificate"):
            client_context(text, None, verify=True)


def test_a_key_of_another_certificate_is_named():
    ca = trustme.CA()
    one, other = ca.issue_cert("a"), ca.issue_cert("b")
    identity = Identity(one.cert_chain_pems[0].bytes(), other.private_key_pem.bytes())
    with pytest.raises(ConfigError, match="client-certificate: cannot be used with its key"):
        client_context(None, identity, verify=True)
