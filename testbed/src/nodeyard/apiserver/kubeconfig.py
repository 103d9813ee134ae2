"""Kubeconfigs of test servers: one context with inline credentials."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from nodeyard.cli.failures import Failure
from nodeyard.kube.json import Object
from nodeyard.kube.manifests import dump
from nodeyard.process.certificates import Pair, write_private

_NAME = "nodeyard"


def with_token(url: str, authority: bytes, token: str) -> Object:
    return _config(url, authority, {"token": token})


def with_certificate(url: str, authority: bytes, pair: Pair) -> Object:
    user = {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)}
    return _config(url, authority, user)


def write(path: Path, config: Object) -> Path:
    """Write a kubeconfig that only its owner can read, as JSON, which is YAML as well; return its path."""
    _write(path, json.dumps(config, indent=2))
    return path


def write_kubeconfig(path: Path, url: str, authority: bytes, token: str) -> None:
    """Write the kubeconfig of `nodeyard apiserver`, as people read it."""
    try:
        _write(path, dump(with_token(url, authority, token)))
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror}") from None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, text.encode())


def _config(url: str, authority: bytes, user: Object) -> Object:
    cluster = {"server": url, "certificate-authority-data": _base64(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
