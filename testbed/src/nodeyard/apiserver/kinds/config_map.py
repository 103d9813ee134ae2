"""ConfigMaps, and the rules for data that Secrets share."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import AGE, NAME, age_of, name_of, text_column
from nodeyard.apiserver.kinds.strategy import BuiltIn
from nodeyard.apiserver.kinds.validation import config_key_faults, faults_at
from nodeyard.kube.fields import FieldError, forbidden, invalid, key, too_long
from nodeyard.kube.json import Json, Object

SIZE_MAX = 1024 * 1024
_IMMUTABLE_DATA = "field is immutable when `immutable` is set"


def decoded_length(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=")


def immutable_data_errors(new: Object, old: Object, fields: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [forbidden("immutable", _IMMUTABLE_DATA)]
    return errors + [
        forbidden(field, _IMMUTABLE_DATA) for field in fields if (new.get(field) or {}) != (old.get(field) or {})
    ]


class ConfigMapStrategy(BuiltIn):
    definition = "io.k8s.api.core.v1.ConfigMap"
    plural = "configmaps"
    short_names = ("cm",)
    columns = (NAME, text_column("Data", "How many keys it has."), AGE)

    def validate_create(self, obj: Object) -> list[FieldError]:
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
            size += decoded_length(value)
        if size > SIZE_MAX:
            errors.append(too_long("[]", SIZE_MAX))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = immutable_data_errors(new, old, ("data", "binaryData"))
        return errors + self.validate_create(new)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        return [name_of(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age_of(obj, now)]
