"""Kubeconfigs for users of a test control plane: inline credentials, one context."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from nodeyard.process.certificates import Pair, write_private

CONTEXT = "nodeyard-testing"


def with_token(url: str, authority: bytes, token: str) -> dict[str, Any]:
    return _config(url, authority, {"token": token})


def with_certificate(url: str, authority: bytes, pair: Pair) -> dict[str, Any]:
    return _config(
        url,
        authority,
        {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)},
    )


def write(path: Path, config: dict[str, Any]) -> Path:
    """Write a kubeconfig as JSON, which is YAML as well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, json.dumps(config, indent=2).encode())
    return path


def _config(url: str, authority: bytes, user: dict[str, str]) -> dict[str, Any]:
    cluster = {"server": url, "certificate-authority-data": _base64(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": user}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
        "current-context": CONTEXT,
    }


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
