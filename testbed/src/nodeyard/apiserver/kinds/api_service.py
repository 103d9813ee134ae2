"""APIServices: the server behind a version of a group. They are stored and shown; requests are not proxied."""

from __future__ import annotations

from base64 import b64decode
from datetime import datetime

from nodeyard.apiserver.kinds.columns import AGE, NAME, age_of, name_of, spec_of, status_of, text_column
from nodeyard.apiserver.kinds.edits import filler, keep_metadata
from nodeyard.apiserver.kinds.strategy import Paths, WithStatus
from nodeyard.apiserver.kinds.validation import (
    faults_at,
    path_segment_faults,
    port_number_errors,
    subdomain_errors_at,
    unsupported,
)
from nodeyard.kube.fields import FieldError, index, invalid, required
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import dns_1035_faults
from nodeyard.kube.timestamps import format_rfc3339

MAX_GROUP_PRIORITY = 20000
MAX_VERSION_PRIORITY = 1000
_STATUSES = ("True", "False", "Unknown")
_KEPT = ("labels", "annotations", "finalizers", "ownerReferences")


def _name_errors(obj: Object, spec: Object) -> list[FieldError]:
    name, wanted = obj["metadata"].get("name", ""), f"{spec.get('version', '')}.{spec.get('group', '')}"
    if not name or path_segment_faults(name) or name == wanted:
        return []
    return [invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"')]


def _version_errors(spec: Object) -> list[FieldError]:
    group, version = spec.get("group") or "", spec.get("version") or ""
    found = subdomain_errors_at("spec.group", group) if group else []
    if not group and version != "v1":
        found = [required("spec.group", "only v1 may have an empty group and it better be legacy kube")]
    return found + faults_at("spec.version", version, dns_1035_faults)


def _local_errors(spec: Object) -> list[FieldError]:
    found = []
    if spec.get("caBundle"):
        size = len(b64decode(spec["caBundle"]))
        found.append(invalid("spec.caBundle", f"{size} bytes", "local APIServices may not have a caBundle"))
    if spec.get("insecureSkipTLSVerify"):
        found.append(_insecure("local APIServices may not have insecureSkipTLSVerify"))
    return found


def _service_errors(spec: Object) -> list[FieldError]:
    service = spec["service"]
    found = [required(f"spec.service.{field}") for field in ("namespace", "name") if not service.get(field)]
    port = service.get("port", 443)
    for error in port_number_errors("spec.service.port", port):
        found.append(invalid("spec.service.port", port, f"port is not valid: {error.detail}"))
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        found.append(_insecure("may not be true if caBundle is present"))
    return found


def _insecure(detail: str) -> FieldError:
    value: Json = True
    return invalid("spec.insecureSkipTLSVerify", value, detail)


def _service(obj: Object) -> str:
    service = spec_of(obj).get("service")
    return "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"


def _availability(obj: Object) -> str:
    conditions = status_of(obj).get("conditions") or ()
    condition = next((each for each in conditions if each.get("type") == "Available"), None)
    if condition is None:
        return "Unknown"
    state, reason = str(condition.get("status", "")), condition.get("reason")
    return f"{state} ({reason})" if reason and state != "True" else state


class APIServiceStrategy(WithStatus):
    definition = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService"
    plural = "apiservices"
    namespaced = False
    categories = ("api-extensions",)
    defaults = {"io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference": filler({"port": 443})}
    columns = (
        NAME,
        text_column("Service", "The Service of the server that has this version of the group; Local: this one has it."),
        text_column("Available", "Whether that server answers."),
        AGE,
    )
    uses_generation = False
    allows_unconditional_update = False

    def reset_fields(self, subresource: str) -> Paths:
        return (("spec",), ("metadata",)) if subresource == "status" else (("status",),)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        is_local = (obj.get("spec") or {}).get("service") is None
        return {**obj, "status": {"conditions": [_available(now)]} if is_local else {}}

    def prepare_status(self, new: Object, old: Object) -> Object:
        return keep_metadata(super().prepare_status(new, old), old, *_KEPT)

    def validate_name(self, name: str) -> list[str]:
        return path_segment_faults(name)

    def validate_create(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found = _name_errors(obj, spec) + _version_errors(spec)
        for field, most in (("groupPriorityMinimum", MAX_GROUP_PRIORITY), ("versionPriority", MAX_VERSION_PRIORITY)):
            if not 0 < (priority := spec.get(field) or 0) <= most:
                found.append(invalid(f"spec.{field}", priority, f"must be positive and less than {most}"))
        return found + (_local_errors(spec) if spec.get("service") is None else _service_errors(spec))

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        conditions = (new.get("status") or {}).get("conditions") or ()
        return [
            unsupported(f"{index('status.conditions', place)}.status", condition.get("status", ""), *_STATUSES)
            for place, condition in enumerate(conditions)
            if condition.get("status") not in _STATUSES
        ]

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        return [name_of(obj), _service(obj), _availability(obj), age_of(obj, now)]


def _available(now: datetime) -> Object:
    return {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": format_rfc3339(now),
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
