"""Events, of the core group and of their own."""

from __future__ import annotations

from nodeyard.apiserver.kinds import event as events
from nodeyard.apiserver.kinds.columns import events as columns
from nodeyard.apiserver.kinds.strategy import BuiltIn, reader
from nodeyard.apiserver.kinds.validation import path_segment_faults
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object

_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


class CoreEventStrategy(BuiltIn):
    """Old enough that its name may be anything."""

    definition = "io.k8s.api.core.v1.Event"
    plural = "events"
    short_names = ("ev",)
    printer = columns.CORE_EVENT
    allows_create_on_update = True
    has_own_field_labels = True
    fields = {
        **{f"involvedObject.{field}": reader("involvedObject", field) for field in _ABOUT},
        "reason": reader("reason"),
        "reportingComponent": reader("reportingComponent"),
        "source": lambda obj: reader("source", "component")(obj) or reader("reportingComponent")(obj),
        "type": reader("type"),
    }

    def validate_name(self, name: str) -> list[str]:
        return path_segment_faults(name)

    def validate_create(self, obj: Object) -> list[FieldError]:
        return events.core_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return events.core_errors(new)


class EventStrategy(BuiltIn):
    definition = "io.k8s.api.events.v1.Event"
    plural = "events"
    short_names = ("ev",)
    printer = columns.EVENT
    allows_create_on_update = True
    has_own_field_labels = True
    fields = {
        **{f"regarding.{field}": reader("regarding", field) for field in _ABOUT},
        "reason": reader("reason"),
        "reportingController": reader("reportingController"),
        "type": reader("type"),
    }

    def validate_create(self, obj: Object) -> list[FieldError]:
        return events.errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return events.update_errors(new, old)
