"""ControllerRevisions: the history of DaemonSets and StatefulSets."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import AGE, NAME, NONE, age_of, name_of, text_column
from nodeyard.apiserver.kinds.strategy import BuiltIn
from nodeyard.apiserver.kinds.validation import IMMUTABLE, NOT_NEGATIVE
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, invalid, required
from nodeyard.kube.json import Json, Object, json_equal


class ControllerRevisionStrategy(BuiltIn):
    definition = "io.k8s.api.apps.v1.ControllerRevision"
    plural = "controllerrevisions"
    columns = (
        NAME,
        text_column("Controller", "The controller of the revision."),
        text_column("Revision", "Its number."),
        AGE,
    )

    def validate_create(self, obj: Object) -> list[FieldError]:
        revision = obj.get("revision", 0)
        errors = [] if revision >= 0 else [invalid("revision", revision, NOT_NEGATIVE)]
        data = obj.get("data")
        if data is None:
            errors.append(required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            errors.append(invalid("data", data, "data must be a valid JSON object"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = self.validate_create(new)
        if not json_equal(new.get("data"), old.get("data")):
            errors.append(invalid("data", new.get("data"), IMMUTABLE))
        return errors

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        owner = meta.controller_of(obj)
        controller = NONE
        if owner is not None:
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = f"{owner['kind']}.{group}" if group else owner["kind"]
            controller = f"{kind.lower()}/{owner['name']}"
        return [name_of(obj), controller, obj.get("revision", 0), age_of(obj, now)]
