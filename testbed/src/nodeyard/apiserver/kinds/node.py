"""Nodes."""

from __future__ import annotations

import ipaddress
from datetime import datetime

from nodeyard.apiserver.kinds.columns import AGE, NAME, NONE, age_of, name_of, spec_of, status_of, text_column
from nodeyard.apiserver.kinds.pod.resource_validation import integer_errors
from nodeyard.apiserver.kinds.pod.scheduling_validation import effect_errors
from nodeyard.apiserver.kinds.strategy import WithStatus, flag
from nodeyard.apiserver.kinds.validation import NOT_NEGATIVE, cidr_errors, faults_at, raw_json
from nodeyard.kube import meta, quantity
from nodeyard.kube.fields import FieldError, FieldErrorType, forbidden, index, invalid
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import ROLE_PREFIX, label_value_faults, qualified_name_faults
from nodeyard.kube.taints import taints_of

_ROLE_LABEL = "kubernetes.io/role"
_UNKNOWN = "<unknown>"


def _with_pod_cidrs(obj: Object) -> Object:
    """Keep podCIDR and the first of podCIDRs the same."""
    cidr, cidrs = obj.get("podCIDR"), obj.get("podCIDRs") or []
    if cidr and (not cidrs or cidrs[0] != cidr):
        return {**obj, "podCIDRs": [cidr]}
    return {**obj, "podCIDR": cidrs[0]} if cidrs and not cidr else obj


def _with_allocatable(obj: Object) -> Object:
    """Allocatable defaults to capacity."""
    capacity = obj.get("capacity")
    return {**obj, "allocatable": capacity} if capacity and "allocatable" not in obj else obj


def _taint_errors(taints: list[Object]) -> list[FieldError]:
    """Reported under metadata, as kube-apiserver does: taints were once an annotation."""
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for place, taint in enumerate(taints):
        path = index("metadata.taints", place)
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        errors += faults_at(f"{path}.key", key, qualified_name_faults)
        if faults := label_value_faults(value):
            errors.append(invalid(f"{path}.value", value, ";".join(faults)))
        errors += effect_errors(f"{path}.effect", effect)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            detail = "taints must be unique by key and effect pair"
            errors.append(FieldError(FieldErrorType.DUPLICATE, path, raw_json(shown), detail))
        seen.add((key, effect))
    return errors


def _resource_errors(obj: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("capacity", "allocatable"):
        for name, amount in (status_of(obj).get(field) or {}).items():
            path = f"status.{field}.{name}"
            if quantity.parse(amount).nano < 0:
                errors.append(invalid(path, amount, NOT_NEGATIVE))
            errors += integer_errors(path, name, amount)
    return errors


def _address_errors(obj: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for place, address in enumerate(status_of(obj).get("addresses") or ()):
        pair = (address.get("type", ""), address.get("address", ""))
        if pair in seen:
            shown = raw_json({"Type": pair[0], "Address": pair[1]})
            errors.append(FieldError(FieldErrorType.DUPLICATE, index("status.addresses", place), shown))
        seen.add(pair)
    return errors


def _cidr_errors(cidrs: list[str]) -> list[FieldError]:
    errors = [error for place, cidr in enumerate(cidrs) for error in cidr_errors(index("spec.podCIDRs", place), cidr)]
    if errors or len(cidrs) < 2:
        return errors
    families = {ipaddress.ip_network(cidr, strict=False).version for cidr in cidrs}
    if len(cidrs) > len(families):
        return [invalid("spec.podCIDRs", cidrs, "may specify no more than one CIDR for each IP family")]
    return []


def _readiness(obj: Object) -> str:
    words = "Unknown"
    for condition in status_of(obj).get("conditions") or ():
        if condition.get("type") == "Ready":
            words = "Ready" if condition.get("status") == "True" else "NotReady"
    return f"{words},SchedulingDisabled" if spec_of(obj).get("unschedulable") else words


def _roles(obj: Object) -> list[str]:
    roles = set()
    for key, value in meta.labels(obj).items():
        if key.startswith(ROLE_PREFIX):
            roles.add(key.removeprefix(ROLE_PREFIX))
        elif key == _ROLE_LABEL:
            roles.add(value)
    return sorted(roles - {""})


def _address(obj: Object, kind: str) -> str:
    for address in status_of(obj).get("addresses") or ():
        if address.get("type") == kind:
            return str(address.get("address", ""))
    return NONE


class NodeStrategy(WithStatus):
    definition = "io.k8s.api.core.v1.Node"
    plural = "nodes"
    namespaced = False
    short_names = ("no",)
    defaults = {"io.k8s.api.core.v1.NodeSpec": _with_pod_cidrs, "io.k8s.api.core.v1.NodeStatus": _with_allocatable}
    columns = (
        NAME,
        text_column("Status", "Whether the node is ready and takes pods."),
        text_column("Roles", "Roles from the node's labels."),
        AGE,
        text_column("Version", "Version of the kubelet."),
        text_column("Internal-IP", "Address inside the cluster.", wide=True),
        text_column("External-IP", "Address outside the cluster.", wide=True),
        text_column("OS-Image", "Operating system.", wide=True),
        text_column("Kernel-Version", "Kernel and architecture.", wide=True),
        text_column("Container-Runtime", "Container runtime and its version.", wide=True),
    )
    uses_generation = False
    has_own_field_labels = True
    fields = {"spec.unschedulable": flag("spec", "unschedulable")}

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        """A kubelet registers its node with status."""
        return obj

    def validate_create(self, obj: Object) -> list[FieldError]:
        return _taint_errors(taints_of(obj)) + _resource_errors(obj) + _cidr_errors(spec_of(obj).get("podCIDRs") or [])

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        if taints_of(new) != taints_of(old):
            errors += _taint_errors(taints_of(new))
        spec, before = spec_of(new), spec_of(old)
        if spec.get("podCIDRs") != before.get("podCIDRs"):
            errors += _cidr_errors(spec.get("podCIDRs") or [])
            if before.get("podCIDRs"):
                detail = 'node updates may not change podCIDR except from "" to valid'
                errors.append(forbidden("spec.podCIDRs", detail))
        if before.get("providerID") and spec.get("providerID") != before["providerID"]:
            errors.append(
                forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')
            )
        if spec.get("externalID", "") != before.get("externalID", ""):
            errors.append(forbidden("spec.externalID", "may not be updated"))
        return errors

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return _resource_errors(new) + _address_errors(new)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        info = status_of(obj).get("nodeInfo") or {}
        kernel = info.get("kernelVersion") or _UNKNOWN
        if info.get("architecture"):
            kernel = f"{kernel} ({info['architecture']})"
        return [
            name_of(obj),
            _readiness(obj),
            ",".join(_roles(obj)) or NONE,
            age_of(obj, now),
            info.get("kubeletVersion", ""),
            _address(obj, "InternalIP"),
            _address(obj, "ExternalIP"),
            info.get("osImage") or _UNKNOWN,
            kernel,
            info.get("containerRuntimeVersion") or _UNKNOWN,
        ]
