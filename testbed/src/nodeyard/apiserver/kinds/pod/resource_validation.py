"""Validation of resources of containers and nodes: names, quantities, requests against limits."""

from __future__ import annotations

from nodeyard.apiserver.kinds.validation import NOT_NEGATIVE, faults_at
from nodeyard.kube import quantity
from nodeyard.kube.fields import FieldError, invalid, key, required
from nodeyard.kube.json import Object
from nodeyard.kube.names import qualified_name_faults

_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
_STANDARD = frozenset(
    (
        *_OF_CONTAINERS, "pods", "services", "replicationcontrollers", "resourcequotas", "secrets",
        "persistentvolumeclaims", "configmaps", "storage", "requests.cpu", "requests.memory", "requests.storage",
        "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage", "services.nodeports",
        "services.loadbalancers",
    )
)  # fmt: skip
_WHOLE = frozenset(
    (
        "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    )
)  # fmt: skip
_NATIVE = "kubernetes.io/"
_HUGE = "hugepages-"


def is_extended(name: str) -> bool:
    """True if a resource is extended: its name has a domain other than kubernetes.io."""
    return "/" in name and _NATIVE not in name and not name.startswith("requests.")


def can_be_overcommitted(name: str) -> bool:
    return ("/" not in name or _NATIVE in name) and not name.startswith(_HUGE)


def integer_errors(path: str, name: str, amount: str) -> list[FieldError]:
    is_whole = name in _WHOLE or is_extended(name)
    if is_whole and quantity.parse(amount).nano % quantity.NANO:
        return [invalid(path, amount, "must be an integer")]
    return []


def requirement_errors(resources: Object, path: str) -> list[FieldError]:
    """Validate requests and limits of a container."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    errors: list[FieldError] = []
    for name, amount in limits.items():
        errors += _amount_errors(name, amount, key(f"{path}.limits", name))
    for name, amount in requests.items():
        errors += _amount_errors(name, amount, key(f"{path}.requests", name))
        errors += _against_limit_errors(name, amount, limits, path)
    return errors


def _amount_errors(name: str, amount: str, path: str) -> list[FieldError]:
    errors = _name_errors(name, path)
    if quantity.parse(amount).nano < 0:
        errors.append(invalid(path, amount, NOT_NEGATIVE))
    return errors + integer_errors(path, name, amount)


def _name_errors(name: str, path: str) -> list[FieldError]:
    errors = faults_at(path, name, qualified_name_faults)
    if errors:
        return errors
    if "/" in name:
        return []
    if name not in _STANDARD and not name.startswith(_HUGE):
        errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    if name not in _OF_CONTAINERS and not name.startswith(_HUGE):
        errors.append(invalid(path, name, "must be a standard resource for containers"))
    return errors


def _against_limit_errors(name: str, amount: str, limits: Object, path: str) -> list[FieldError]:
    limit = limits.get(name)
    if limit is None:
        if can_be_overcommitted(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    asked, allowed = quantity.parse(amount), quantity.parse(limit)
    if not can_be_overcommitted(name) and asked != allowed:
        return [invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}")]
    if asked > allowed:
        return [invalid(f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limit}")]
    return []
