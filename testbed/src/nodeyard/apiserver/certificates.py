"""The TLS context of the listener: a serving certificate, and client certificates of the same authority."""

from __future__ import annotations

import os
import ssl
import tempfile

from nodeyard.process.certificates import Authority, Pair


def server_context(authority: Authority, *hosts: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=authority.pem.decode())
    _load(context, authority.server(*hosts))
    return context


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    """Load the pair from a temporary private file: Python's ssl reads certificates from files only."""
    handle, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pair.certificate + pair.key)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)
