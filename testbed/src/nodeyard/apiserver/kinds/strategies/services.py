"""Services, with the addresses they are given."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds import service as services
from nodeyard.apiserver.kinds.addresses import with_addresses, with_old_addresses
from nodeyard.apiserver.kinds.columns import services as columns
from nodeyard.apiserver.kinds.strategy import WithStatus, reader
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object
from nodeyard.kube.names import label_faults


class ServiceStrategy(WithStatus):
    definition = "io.k8s.api.core.v1.Service"
    plural = "services"
    short_names = ("svc",)
    categories = ("all",)
    printer = columns.SERVICE
    uses_generation = False
    allows_create_on_update = True
    has_own_field_labels = True
    fields = {"spec.clusterIP": reader("spec", "clusterIP"), "spec.type": reader("spec", "type")}

    def validate_name(self, name: str) -> list[str]:
        return label_faults(name)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        return with_addresses(super().prepare_create(obj, now))

    def prepare_update(self, new: Object, old: Object) -> Object:
        return with_addresses(with_old_addresses(super().prepare_update(new, old), old))

    def validate_create(self, obj: Object) -> list[FieldError]:
        return services.errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return services.update_errors(new, old)
