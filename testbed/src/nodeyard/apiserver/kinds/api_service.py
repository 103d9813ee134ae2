"""APIServices."""

from __future__ import annotations

from base64 import b64decode

from nodeyard.apiserver.kinds.validation import (
    dns_1035_faults,
    faults_at,
    path_segment_faults,
    port_number_errors,
    subdomain_errors_at,
    unsupported,
)
from nodeyard.kube.fields import FieldError, index, invalid, required
from nodeyard.kube.json import Json, Object

MAX_GROUP_PRIORITY = 20000
MAX_VERSION_PRIORITY = 1000


def errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = _name_errors(obj, spec) + _version_errors(spec)
    for field, most in (("groupPriorityMinimum", MAX_GROUP_PRIORITY), ("versionPriority", MAX_VERSION_PRIORITY)):
        if not 0 < (priority := spec.get(field) or 0) <= most:
            found.append(invalid(f"spec.{field}", priority, f"must be positive and less than {most}"))
    return found + (_local_errors(spec) if spec.get("service") is None else _service_errors(spec))


def status_errors(obj: Object) -> list[FieldError]:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return [
        unsupported(f"{index('status.conditions', place)}.status", condition.get("status", ""), *_STATUSES)
        for place, condition in enumerate(conditions)
        if condition.get("status") not in _STATUSES
    ]


_STATUSES = ("True", "False", "Unknown")


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
