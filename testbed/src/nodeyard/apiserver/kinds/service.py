"""Services."""

from __future__ import annotations

from nodeyard.apiserver.kinds.validation import (
    choice_errors,
    faults_at,
    ip_errors,
    label_errors_at,
    port_errors,
    port_number_errors,
    required_choice_errors,
    subdomain_errors_at,
    written,
)
from nodeyard.apiserver.metadata import label_errors
from nodeyard.kube.fields import FieldError, FieldErrorType, duplicate, forbidden, index, invalid, required
from nodeyard.kube.json import Object
from nodeyard.kube.names import label_faults

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    kind, ports = spec.get("type", ""), spec.get("ports") or []
    found: list[FieldError] = []
    if kind == "ExternalName":
        found += _external_name_errors(spec)
    elif not ports and spec.get("clusterIP") != "None":
        found.append(required("spec.ports"))
    found += _port_list_errors(ports, kind)
    found += label_errors(spec.get("selector") or {}, "spec.selector")
    affinity = spec.get("sessionAffinity")
    found += required_choice_errors("spec.sessionAffinity", affinity, "ClientIP", "None")
    found += _cluster_ip_errors(spec)
    for place, address in enumerate(spec.get("externalIPs") or ()):
        found += ip_errors(index("spec.externalIPs", place), address)
    return found + required_choice_errors("spec.type", kind, *_TYPES)


def _external_name_errors(spec: Object) -> list[FieldError]:
    name = spec.get("externalName", "").rstrip(".")
    if not name:
        return [required("spec.externalName")]
    return subdomain_errors_at("spec.externalName", name)


def _cluster_ip_errors(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for place, address in enumerate(spec.get("clusterIPs") or ()):
        if address != "None":
            found += ip_errors(index("spec.clusterIPs", place), address)
    return found


def _port_list_errors(ports: list[Object], kind: str) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    taken: set[tuple[str, int]] = set()
    for place, port in enumerate(ports):
        path = index("spec.ports", place)
        found += _name_errors(port, path, names, is_required=len(ports) > 1)
        found += _port_errors(port, path)
        if port.get("nodePort") and kind == "ClusterIP":
            found.append(forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'"))
    for place, port in enumerate(ports):
        pair = (port.get("protocol", ""), port.get("port", 0))
        if pair in taken:
            shown = {
                "Name": "",
                "Protocol": pair[0],
                "AppProtocol": None,
                "Port": pair[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            found.append(FieldError(FieldErrorType.DUPLICATE, index("spec.ports", place), written(shown)))
        taken.add(pair)
    return found


def _name_errors(port: Object, path: str, names: set[str], *, is_required: bool) -> list[FieldError]:
    name = port.get("name", "")
    if not name:
        return label_errors_at(f"{path}.name", name) if is_required else []
    found = faults_at(f"{path}.name", name, label_faults)
    if name in names:
        found.append(duplicate(f"{path}.name", name))
    names.add(name)
    return found


def _port_errors(port: Object, path: str) -> list[FieldError]:
    found = port_number_errors(f"{path}.port", port.get("port", 0))
    protocol = port.get("protocol")
    found += choice_errors(f"{path}.protocol", protocol, *_PROTOCOLS) if protocol else [required(f"{path}.protocol")]
    return found + port_errors(f"{path}.targetPort", port.get("targetPort", 0))


def update_errors(new: Object, old: Object) -> list[FieldError]:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    found: list[FieldError] = []
    address, earlier = spec.get("clusterIP", ""), before.get("clusterIP", "")
    keeps_address = spec.get("type") != "ExternalName" and before.get("type") != "ExternalName"
    if keeps_address and earlier and address != earlier:
        found.append(invalid("spec.clusterIPs[0]", [address] if address else None, "may not change once set"))
    return found + errors(new)
