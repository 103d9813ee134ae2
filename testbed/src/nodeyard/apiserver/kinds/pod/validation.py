"""Validation of pods and of the spec that pods and templates share."""

from __future__ import annotations

from nodeyard.apiserver.kinds.pod.container_validation import (
    container_errors,
    host_network_errors,
    init_container_errors,
    whitespace_errors,
)
from nodeyard.apiserver.kinds.pod.scheduling_validation import (
    affinity_errors,
    gate_errors,
    spread_errors,
    toleration_errors,
)
from nodeyard.apiserver.kinds.pod.volume_validation import volume_errors
from nodeyard.apiserver.kinds.validation import (
    faults_at,
    ip_errors,
    range_fault,
    required_choice_errors,
    subdomain_errors_at,
    unsupported,
)
from nodeyard.apiserver.metadata import label_errors
from nodeyard.kube.fields import FieldError, forbidden, index, invalid, required
from nodeyard.kube.json import Object
from nodeyard.kube.names import label_faults, qualified_name_faults

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")


_MAX_NAMESERVERS = 3


def create_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = pod_errors(obj)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def pod_errors(obj: Object) -> list[FieldError]:
    """Validate a pod on create and update."""
    spec = obj.get("spec") or {}
    errors = spec_errors(spec, "spec", is_pod=True)
    for field in ("containers", "initContainers"):
        errors += whitespace_errors(spec.get(field) or [], f"spec.{field}")
    return errors


def spec_errors(spec: Object, path: str, *, is_pod: bool) -> list[FieldError]:
    containers, before = spec.get("containers") or [], spec.get("initContainers") or []
    volumes, errors = volume_errors(spec.get("volumes") or [], f"{path}.volumes")
    errors += container_errors(containers, volumes, f"{path}.containers")
    errors += init_container_errors(before, containers, volumes, f"{path}.initContainers")
    if spec.get("hostNetwork"):
        errors += host_network_errors(containers, f"{path}.containers", is_pod=is_pod)
    errors += required_choice_errors(f"{path}.restartPolicy", spec.get("restartPolicy"), "Always", "OnFailure", "Never")
    errors += required_choice_errors(f"{path}.dnsPolicy", spec.get("dnsPolicy"), *_DNS_POLICIES)
    errors += label_errors(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    errors += affinity_errors(spec.get("affinity") or {}, f"{path}.affinity")
    errors += _dns_errors(spec, f"{path}.dnsConfig")
    errors += _readiness_gate_errors(spec.get("readinessGates") or [], f"{path}.readinessGates")
    errors += gate_errors(spec.get("schedulingGates") or [], f"{path}.schedulingGates")
    errors += spread_errors(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints")
    return errors + _name_errors(spec, path) + _rest_errors(spec, path)


def _name_errors(spec: Object, path: str) -> list[FieldError]:
    """Validate names and the deadline. Empty names count as unset."""
    errors: list[FieldError] = []
    for field in ("serviceAccountName", "nodeName"):
        if spec.get(field):
            errors += subdomain_errors_at(f"{path}.{field}", spec[field])
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, range_fault(1, 2**31 - 1)))
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            errors += faults_at(f"{path}.{field}", spec[field], label_faults)
    return errors


def _rest_errors(spec: Object, path: str) -> list[FieldError]:
    errors = toleration_errors(spec.get("tolerations") or [], f"{path}.tolerations")
    errors += _host_alias_errors(spec.get("hostAliases") or [], f"{path}.hostAliases")
    for field in ("priorityClassName", "runtimeClassName"):
        if spec.get(field):
            errors += subdomain_errors_at(f"{path}.{field}", spec[field])
    if spec.get("preemptionPolicy") is not None:
        choices = ("PreemptLowerPriority", "Never")
        errors += required_choice_errors(f"{path}.preemptionPolicy", spec["preemptionPolicy"], *choices)
    if spec.get("os") is not None:
        name = spec["os"].get("name")
        if not name:
            errors.append(required(f"{path}.os.name"))
        elif name not in ("linux", "windows"):
            errors.append(unsupported(f"{path}.os", name, "linux", "windows"))
    return errors


def _dns_errors(spec: Object, path: str) -> list[FieldError]:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", detail)]
    if config is None:
        return []
    errors: list[FieldError] = []
    servers = config.get("nameservers") or []
    if len(servers) > _MAX_NAMESERVERS:
        detail = f"must not have more than {_MAX_NAMESERVERS} nameservers"
        errors.append(invalid(f"{path}.nameservers", servers, detail))
    for place, server in enumerate(servers):
        errors += ip_errors(index(f"{path}.nameservers", place), server)
    for place, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(index(f"{path}.options", place), "must not be empty"))
    return errors


def _readiness_gate_errors(gates: list[Object], path: str) -> list[FieldError]:
    return [
        error
        for place, gate in enumerate(gates)
        for error in faults_at(
            f"{index(path, place)}.conditionType", gate.get("conditionType", ""), qualified_name_faults
        )
    ]


def _host_alias_errors(aliases: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for place, alias in enumerate(aliases):
        where = index(path, place)
        errors += ip_errors(f"{where}.ip", alias.get("ip", ""))
        for position, name in enumerate(alias.get("hostnames") or ()):
            errors += subdomain_errors_at(index(f"{where}.hostnames", position), name)
    return errors
