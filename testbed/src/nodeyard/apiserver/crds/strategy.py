"""CustomResourceDefinitions as a kind: names and versions that follow from the spec, and deletion after the objects."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.cel.cost import compilation_cost
from nodeyard.apiserver.crds import validation
from nodeyard.apiserver.crds.resource import compile_ahead
from nodeyard.apiserver.kinds.columns import CREATED_AT, NAME, created_cells
from nodeyard.apiserver.kinds.strategy import Paths, WithStatus
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Json, Object
from nodeyard.kube.timestamps import format_rfc3339

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"

_PER_NODE = 100
"""The cost of validating and compiling a node of a schema."""
_TEXTS = ("pattern", "jsonPath")
_EXPRESSIONS = ("rule", "messageExpression")


class CustomResourceDefinitionStrategy(WithStatus):
    definition = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
    plural = "customresourcedefinitions"
    namespaced = False
    short_names = ("crd", "crds")
    categories = ("api-extensions",)
    columns = (NAME, CREATED_AT)

    def default(self, obj: Object) -> Object:
        """Default the names that follow from the kind, and no conversion."""
        spec = dict(obj.get("spec") or {})
        names = dict(spec.get("names") or {})
        if names.get("kind"):
            names["singular"] = names.get("singular") or names["kind"].lower()
            names["listKind"] = names.get("listKind") or f"{names['kind']}List"
        spec["names"] = names
        spec["conversion"] = spec.get("conversion") or {"strategy": "None"}
        return obj if spec == obj.get("spec") else {**obj, "spec": spec}

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        stored = [version["name"] for version in obj["spec"].get("versions") or () if version.get("storage")]
        status: Object = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored[:1]}
        return {**obj, "status": status}

    def prepare_update(self, new: Object, old: Object) -> Object:
        """Keep the status, and add a new storage version to its storedVersions."""
        status = old.get("status") or {}
        stored = list(status.get("storedVersions") or ())
        for version in new["spec"].get("versions") or ():
            if version.get("storage") and version["name"] not in stored:
                stored.append(version["name"])
        return {**new, "status": {**status, "storedVersions": stored}}

    def prepare_status(self, new: Object, old: Object) -> Object:
        metadata = {**old["metadata"], "managedFields": new["metadata"].get("managedFields", [])}
        return {**old, "metadata": metadata, "status": new.get("status") or {}}

    def prepare_delete(self, obj: Object, now: datetime) -> Object | None:
        """Set the cleanup finalizer, so that the definition goes after its objects."""
        metadata = obj["metadata"]
        if "deletionTimestamp" in metadata:
            return obj if metadata.get("finalizers") else None
        finalizers = [*metadata.get("finalizers", ()), CLEANUP]
        conditions = [c for c in (obj.get("status") or {}).get("conditions") or () if c["type"] != "Terminating"]
        conditions.append(
            {
                "type": "Terminating",
                "status": "True",
                "lastTransitionTime": format_rfc3339(now),
                "reason": "InstanceDeletionPending",
                "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            }
        )
        marked = {**metadata, "deletionTimestamp": format_rfc3339(now), "finalizers": list(dict.fromkeys(finalizers))}
        return {**obj, "metadata": marked, "status": {**(obj.get("status") or {}), "conditions": conditions}}

    def validation_cost(self, obj: Object) -> int:
        return _schema_cost(obj["spec"].get("versions"))

    def validate_create(self, obj: Object) -> list[FieldError]:
        return validation.faults(obj) or _compiled(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return validation.update_faults(new, old) or _compiled(new)

    def reset_fields(self, subresource: str) -> Paths:
        return (("metadata",), ("spec",)) if subresource == "status" else (("status",),)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        return created_cells(obj)


def _schema_cost(value: Json) -> int:
    if isinstance(value, list):
        return sum(map(_schema_cost, value))
    if not isinstance(value, dict):
        return 0
    cost = _PER_NODE + sum(map(_schema_cost, value.values()))
    cost += sum(compilation_cost(text) for name in _TEXTS if isinstance(text := value.get(name), str))
    if isinstance(rules := value.get("x-kubernetes-validations"), list):
        cost += sum(compilation_cost(rule[name]) for rule in rules for name in _EXPRESSIONS if rule.get(name))
    return cost


def _compiled(definition: Object) -> list[FieldError]:
    """Compile the schemas ahead; there are no faults in them."""
    compile_ahead(definition)
    return []
