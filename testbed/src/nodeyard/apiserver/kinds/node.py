"""Nodes."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from nodeyard.apiserver.kinds.pod.resource_validation import integer_errors
from nodeyard.apiserver.kinds.pod.scheduling_validation import effect_errors
from nodeyard.apiserver.kinds.validation import NOT_NEGATIVE, cidr_errors, faults_at, written
from nodeyard.kube import quantity
from nodeyard.kube.fields import FieldError, FieldErrorType, forbidden, index, invalid
from nodeyard.kube.json import Object
from nodeyard.kube.names import label_value_faults, qualified_name_faults
from nodeyard.kube.taints import taints_of


def create_errors(obj: Object) -> list[FieldError]:
    return _taint_errors(taints_of(obj)) + _resource_errors(obj) + _cidr_errors(_spec(obj).get("podCIDRs") or [])


def update_errors(new: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if taints_of(new) != taints_of(old):
        errors += _taint_errors(taints_of(new))
    spec, before = _spec(new), _spec(old)
    if spec.get("podCIDRs") != before.get("podCIDRs"):
        errors += _cidr_errors(spec.get("podCIDRs") or [])
        if before.get("podCIDRs"):
            detail = 'node updates may not change podCIDR except from "" to valid'
            errors.append(forbidden("spec.podCIDRs", detail))
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        errors.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    if spec.get("externalID", "") != before.get("externalID", ""):
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors


def status_errors(new: Object, old: Object) -> list[FieldError]:
    return _resource_errors(new) + _address_errors(new)


def _spec(obj: Object) -> Mapping[str, Any]:
    return obj.get("spec") or {}


def _status(obj: Object) -> Mapping[str, Any]:
    return obj.get("status") or {}


def _taint_errors(taints: list[Object]) -> list[FieldError]:
    """The server reports them under metadata, where taints were when they were an annotation."""
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
            errors.append(FieldError(FieldErrorType.DUPLICATE, path, written(shown), detail))
        seen.add((key, effect))
    return errors


def _resource_errors(obj: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("capacity", "allocatable"):
        for name, amount in (_status(obj).get(field) or {}).items():
            path = f"status.{field}.{name}"
            if quantity.parse(amount).nano < 0:
                errors.append(invalid(path, amount, NOT_NEGATIVE))
            errors += integer_errors(path, name, amount)
    return errors


def _address_errors(obj: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for place, address in enumerate(_status(obj).get("addresses") or ()):
        pair = (address.get("type", ""), address.get("address", ""))
        if pair in seen:
            shown = written({"Type": pair[0], "Address": pair[1]})
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
