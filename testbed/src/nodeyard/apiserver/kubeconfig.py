"""Writes the kubeconfig of an embedded API server."""

from __future__ import annotations

import base64
from pathlib import Path

from nodeyard.cli.failures import Failure
from nodeyard.kube.manifests import dump
from nodeyard.process.certificates import write_private

_NAME = "nodeyard"


def write_kubeconfig(path: Path, url: str, authority: bytes, token: str) -> None:
    """Write a kubeconfig with inline credentials, readable only by its owner."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": _NAME,
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(authority).decode(),
                },
            }
        ],
        "users": [{"name": _NAME, "user": {"token": token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, dump(config).encode())
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror}") from None
