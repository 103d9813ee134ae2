"""Contents of Secrets and kubeconfigs stand in a plan as a hash only: a plan is printed, logged and shown.

    conceal(secret)                              every value of its data
    conceal(cluster, fields=("spec.kubeconfig",))

Equal contents have equal hashes, however they were written (`stringData` or `data`), so that a diff of two concealed
objects shows exactly what changes and nothing of what it is.
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
    """`sha256:` and enough digits to tell two contents apart; of text, bytes or any other value."""
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes):
        value = msgspec.json.encode(value, order="deterministic")
    return PREFIX + sha256(value).hexdigest()[:_DIGITS]


def is_fingerprint(value: Json) -> bool:
    return isinstance(value, str) and value.startswith(PREFIX) and len(value) == len(PREFIX) + _DIGITS


def conceal(obj: Object, fields: Sequence[str] = ()) -> Object:
    """The object with hashes in place of secret contents: all data of a Secret, and the named fields of any kind."""
    if obj.get("kind") == "Secret":
        obj = _concealed_secret(obj)
    for field in fields:
        obj = _replaced(obj, field.split("."), _hidden)
    return obj


def conceal_texts(value: Json) -> Json:
    """A hash in place of every text in it: of what somebody else has a meaning for, any may be a password."""
    if isinstance(value, dict):
        return {name: conceal_texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [conceal_texts(each) for each in value]
    return fingerprint(value) if isinstance(value, str) else value


def _hidden(value: Json) -> Json:
    return value if is_fingerprint(value) else fingerprint(_decoded(value))


def _concealed_secret(secret: Object) -> Object:
    data = {name: _hidden(value) for name, value in (secret.get("data") or {}).items()}
    data |= {name: fingerprint(value) for name, value in (secret.get("stringData") or {}).items()}
    shown = {name: value for name, value in secret.items() if name not in ("data", "stringData")}
    if data:
        shown["data"] = data
    # kubectl apply keeps a copy of all it was given, secrets too.
    return _replaced(shown, ["metadata", "annotations", LAST_APPLIED], _hidden)


def _decoded(value: Json) -> Json:
    """The bytes that a base64 text stands for; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value


def _replaced(obj: Object, path: Sequence[str], change: Callable[[Json], Json]) -> Object:
    name, rest = path[0], path[1:]
    value = obj.get(name)
    if value is None:
        return obj
    if rest:
        return {**obj, name: _replaced(value, rest, change)} if isinstance(value, dict) else obj
    return {**obj, name: change(value)}
