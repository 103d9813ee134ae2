"""Secrets."""

from __future__ import annotations

import base64
import json
from datetime import datetime

from nodeyard.apiserver.kinds.columns import AGE, NAME, age_of, name_of, text_column
from nodeyard.apiserver.kinds.config_map import SIZE_MAX, decoded_length, immutable_data_errors
from nodeyard.apiserver.kinds.edits import fill
from nodeyard.apiserver.kinds.strategy import BuiltIn, reader
from nodeyard.apiserver.kinds.validation import IMMUTABLE, config_key_faults, faults_at
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, invalid, key, required, too_long
from nodeyard.kube.json import Json, Object

_SERVICE_ACCOUNT = "kubernetes.io/service-account.name"
_REDACTED = "<secret contents redacted>"
# Required keys by type.
_REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def _with_defaults(obj: Object) -> Object:
    """Set the default type, and move the write-only stringData into data."""
    obj = fill(obj, {"type": "Opaque"})
    if "stringData" not in obj:
        return obj
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in obj["stringData"].items()}
    kept = {field: value for field, value in obj.items() if field != "stringData"}
    return {**kept, "data": {**(obj.get("data") or {}), **encoded}}


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


class SecretStrategy(BuiltIn):
    definition = "io.k8s.api.core.v1.Secret"
    plural = "secrets"
    defaults = {"io.k8s.api.core.v1.Secret": _with_defaults}
    columns = (
        NAME,
        text_column("Type", "What kind of secret it is."),
        text_column("Data", "How many keys it has."),
        AGE,
    )
    has_own_field_labels = True
    fields = {"type": reader("type")}

    def validate_create(self, obj: Object) -> list[FieldError]:
        data = obj.get("data") or {}
        errors = [error for name in data for error in faults_at(key("data", name), name, config_key_faults)]
        if sum(decoded_length(value) for value in data.values()) > SIZE_MAX:
            errors.append(too_long("data", SIZE_MAX))
        return errors + _typed_errors(obj, data)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        if new.get("type") != old.get("type"):
            errors.append(invalid("type", new.get("type", ""), IMMUTABLE))
        return errors + immutable_data_errors(new, old, ("data",)) + self.validate_create(new)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        return [name_of(obj), obj.get("type", ""), len(obj.get("data") or ()), age_of(obj, now)]
