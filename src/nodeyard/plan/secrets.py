"""Hashes in place of secret contents: plans are printed, logged and shown in the dashboard.

    conceal(secret)                              every value of its data
    conceal(cluster, fields=("spec.kubeconfig",))

Equal contents have equal hashes, in `stringData` and in `data`, so a diff of two concealed objects shows which values
change without revealing them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from nodeyard.kube.json import Json, Object

PREFIX: Final = "sha256:"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_DIGITS = 16


def fingerprint(value: Json) -> str:
    """Return `sha256:` and the first digits of the hash of a string, bytes or any JSON value."""
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes):
        value = msgspec.json.encode(value, order="deterministic")
    return PREFIX + sha256(value).hexdigest()[:_DIGITS]


def is_fingerprint(value: Json) -> bool:
    return isinstance(value, str) and value.startswith(PREFIX) and len(value) == len(PREFIX) + _DIGITS


def conceal(obj: Object, fields: Sequence[str] = ()) -> Object:
    """Replace secret contents by hashes: all data of a Secret, and the named fields of any kind."""
    if obj.get("kind") == "Secret":
        obj = _conceal_secret(obj)
    for field in fields:
        obj = _replace_at(obj, field.split("."), _hash_once)
    return obj


def conceal_texts(value: Json) -> Json:
    """Replace every string by its hash. Used for values of unknown meaning, any of which may be a password."""
    if isinstance(value, dict):
        return {name: conceal_texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [conceal_texts(each) for each in value]
    return fingerprint(value) if isinstance(value, str) else value


def _hash_once(value: Json) -> Json:
    return value if is_fingerprint(value) else fingerprint(_decode_base64(value))


def _conceal_secret(secret: Object) -> Object:
    data = {name: _hash_once(value) for name, value in (secret.get("data") or {}).items()}
    data |= {name: fingerprint(value) for name, value in (secret.get("stringData") or {}).items()}
    shown = {name: value for name, value in secret.items() if name not in ("data", "stringData")}
    if data:
        shown["data"] = data
    # kubectl apply keeps a copy of the whole manifest in this annotation, secrets included.
    return _replace_at(shown, ["metadata", "annotations", LAST_APPLIED], _hash_once)


def _decode_base64(value: Json) -> Json:
    """Decode a base64 string to bytes; return any other value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value


def _replace_at(obj: Object, path: Sequence[str], change: Callable[[Json], Json]) -> Object:
    name, rest = path[0], path[1:]
    value = obj.get(name)
    if value is None:
        return obj
    if rest:
        return {**obj, name: _replace_at(value, rest, change)} if isinstance(value, dict) else obj
    return {**obj, name: change(value)}
