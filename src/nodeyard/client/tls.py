"""TLS contexts from PEM data.

Verification follows Go, which clusters are tested with. Any certificate in the bundle is a trust anchor, including
intermediates. The strict RFC 5280 checks of newer Python versions are off: they reject certificates without an
authority key identifier, which many clusters have.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from nodeyard.client.credentials import Identity
from nodeyard.client.errors import ConfigError


def client_context(authority: bytes | None, identity: Identity | None, *, verify: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority is None:
        context.load_default_certs()
    else:
        _trust(context, authority)
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    if identity is not None:
        _present(context, identity)
    return context


def _trust(context: ssl.SSLContext, authority: bytes) -> None:
    try:
        context.load_verify_locations(cadata=authority.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError):
        raise ConfigError("certificate-authority: contains no PEM certificate") from None


def _present(context: ssl.SSLContext, identity: Identity) -> None:
    # The ssl module reads certificates only from files; these exist briefly in a private directory (0700).
    with tempfile.TemporaryDirectory(prefix="nodeyard-") as directory:
        chain, key = Path(directory, "chain.pem"), Path(directory, "key.pem")
        chain.write_bytes(identity.certificate)
        key.touch(mode=0o600)
        key.write_bytes(identity.key)
        try:
            context.load_cert_chain(chain, key, password=_no_password)
        except (ssl.SSLError, ConfigError) as error:
            raise ConfigError(f"client-certificate: cannot be used with its key: {error}") from None


def _no_password() -> str:
    raise ConfigError("the key is encrypted")
