"""Secrets and ConfigMaps."""

from __future__ import annotations

from nodeyard.apiserver.kinds import secret as configuration
from nodeyard.apiserver.kinds.columns import configuration as columns
from nodeyard.apiserver.kinds.strategy import BuiltIn, reader
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object


class SecretStrategy(BuiltIn):
    definition = "io.k8s.api.core.v1.Secret"
    plural = "secrets"
    printer = columns.SECRET
    has_own_field_labels = True
    fields = {"type": reader("type")}

    def validate_create(self, obj: Object) -> list[FieldError]:
        return configuration.secret_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return configuration.secret_update_errors(new, old)


class ConfigMapStrategy(BuiltIn):
    definition = "io.k8s.api.core.v1.ConfigMap"
    plural = "configmaps"
    short_names = ("cm",)
    printer = columns.CONFIG_MAP

    def validate_create(self, obj: Object) -> list[FieldError]:
        return configuration.config_map_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return configuration.config_map_update_errors(new, old)
