"""Secrets and ConfigMaps."""

from __future__ import annotations

import base64
import json

from nodeyard.apiserver.kinds.validation import IMMUTABLE, config_key_faults, faults_at
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, forbidden, invalid, key, required, too_long
from nodeyard.kube.json import Object

SIZE_MAX = 1024 * 1024
_SEALED = "field is immutable when `immutable` is set"
_SERVICE_ACCOUNT = "kubernetes.io/service-account.name"
_REDACTED = "<secret contents redacted>"

# Keys that a secret of a type must have.
_REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def config_map_errors(obj: Object) -> list[FieldError]:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    errors: list[FieldError] = []
    size = 0
    for name, value in data.items():
        errors += faults_at(key("data", name), name, config_key_faults)
        if name in binary:
            errors.append(invalid(key("data", name), name, "duplicate of key present in binaryData"))
        size += len(value.encode())
    for name, value in binary.items():
        errors += faults_at(key("binaryData", name), name, config_key_faults)
        size += _decoded_length(value)
    if size > SIZE_MAX:
        errors.append(too_long("[]", SIZE_MAX))
    return errors


def _decoded_length(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=")


def config_map_update_errors(new: Object, old: Object) -> list[FieldError]:
    errors = _seal_errors(new, old, ("data", "binaryData"))
    return errors + config_map_errors(new)


def _seal_errors(new: Object, old: Object, fields: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [forbidden("immutable", _SEALED)]
    return errors + [forbidden(field, _SEALED) for field in fields if (new.get(field) or {}) != (old.get(field) or {})]


def secret_errors(obj: Object) -> list[FieldError]:
    data = obj.get("data") or {}
    errors = [error for name in data for error in faults_at(key("data", name), name, config_key_faults)]
    if sum(_decoded_length(value) for value in data.values()) > SIZE_MAX:
        errors.append(too_long("data", SIZE_MAX))
    return errors + _typed_errors(obj, data)


def _typed_errors(obj: Object, data: Object) -> list[FieldError]:
    kind = obj.get("type", "")
    if kind == "kubernetes.io/service-account-token":
        named = meta.annotations(obj).get(_SERVICE_ACCOUNT)
        return [] if named else [required(key("metadata.annotations", _SERVICE_ACCOUNT))]
    if kind == "kubernetes.io/basic-auth":
        either = ("username", "password")
        return [] if any(name in data for name in either) else [required(key("data", name)) for name in either]
    names = _REQUIRED_KEYS.get(kind, ())
    errors = [required(key("data", name)) for name in names if name not in data]
    if not errors and kind.startswith("kubernetes.io/dockerc"):
        errors += _json_errors(data[names[0]], key("data", names[0]))
    return errors


def _json_errors(encoded: str, path: str) -> list[FieldError]:
    raw = base64.b64decode(encoded)
    try:
        json.loads(raw)
    except ValueError:
        text = raw.decode(errors="replace").strip()
        fault = (
            f"invalid character '{text[0]}' looking for beginning of value" if text else "unexpected end of JSON input"
        )
        return [invalid(path, _REDACTED, fault)]
    return []


def secret_update_errors(new: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if new.get("type") != old.get("type"):
        errors.append(invalid("type", new.get("type", ""), IMMUTABLE))
    return errors + _seal_errors(new, old, ("data",)) + secret_errors(new)
