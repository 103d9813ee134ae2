"""Services, with their defaults and addresses."""

from __future__ import annotations

import hashlib
import ipaddress
from datetime import datetime

from nodeyard.apiserver.kinds.columns import (
    AGE,
    NAME,
    NONE,
    SELECTOR,
    age_of,
    labels_text,
    name_of,
    spec_of,
    status_of,
    text_column,
)
from nodeyard.apiserver.kinds.edits import fill, map_items, replace
from nodeyard.apiserver.kinds.strategy import WithStatus, reader
from nodeyard.apiserver.kinds.validation import (
    choice_errors,
    faults_at,
    ip_errors,
    label_errors_at,
    port_errors,
    port_number_errors,
    raw_json,
    required_choice_errors,
    special_ip_errors,
    subdomain_errors_at,
)
from nodeyard.apiserver.metadata import label_errors
from nodeyard.kube import meta
from nodeyard.kube.fields import FieldError, FieldErrorType, duplicate, forbidden, index, invalid, required
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import label_faults

_STICKY_SECONDS = 10800
HEADLESS = "None"
_NETWORK = ipaddress.IPv4Network("10.96.0.0/12")
_FIRST_NODE_PORT, _NODE_PORTS = 30000, 2768
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def _with_defaults(obj: Object) -> Object:
    spec = fill(obj["spec"], {"sessionAffinity": "None", "type": "ClusterIP"})
    spec = _with_session_affinity(spec)
    if spec.get("ports"):
        spec = replace(spec, ports=map_items(spec["ports"], _with_port_defaults))
    is_external = spec["type"] in ("NodePort", "LoadBalancer")
    if is_external or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        spec = fill(spec, {"externalTrafficPolicy": "Cluster"})
    if spec["type"] != "ExternalName":
        spec = fill(spec, {"internalTrafficPolicy": "Cluster"})
    if spec["type"] == "LoadBalancer":
        spec = fill(spec, {"allocateLoadBalancerNodePorts": True})
    return replace(obj, spec=spec)


def _with_session_affinity(spec: Object) -> Object:
    if spec["sessionAffinity"] == "ClientIP":
        config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if config.get("timeoutSeconds") is None:
            return {**spec, "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": _STICKY_SECONDS}}}
    elif spec["sessionAffinity"] == "None" and "sessionAffinityConfig" in spec:
        return {field: value for field, value in spec.items() if field != "sessionAffinityConfig"}
    return spec


def _with_port_defaults(port: Object) -> Object:
    port = fill(port, {"protocol": "TCP"})
    return port if port.get("targetPort") else {**port, "targetPort": port.get("port", 0)}


def allocate_addresses(obj: Object) -> Object:
    """Allocate cluster IP and node ports.

    The real server keeps a table of those in use. Here they follow from the Service's uid: collisions are rare in a
    range of a million addresses, and nothing routes to them.
    """
    spec = obj["spec"]
    if spec.get("type") == "ExternalName":
        return obj
    address = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "") or _cluster_ip(meta.uid(obj))
    # A Service without selector has endpoints that its user writes, of either family.
    is_open = address == HEADLESS and not spec.get("selector")
    spec = {
        **spec,
        "clusterIP": address,
        "clusterIPs": spec.get("clusterIPs") or [address],
        "ipFamilies": spec.get("ipFamilies") or (["IPv4", "IPv6"] if is_open else [_family(address)]),
        "ipFamilyPolicy": spec.get("ipFamilyPolicy") or ("RequireDualStack" if is_open else "SingleStack"),
    }
    if spec.get("type") in ("NodePort", "LoadBalancer") and spec.get("allocateLoadBalancerNodePorts", True):
        spec["ports"] = [
            port if port.get("nodePort") else {**port, "nodePort": _node_port(meta.uid(obj), place)}
            for place, port in enumerate(spec.get("ports") or ())
        ]
    return {**obj, "spec": spec}


def _keep_allocated(new: Object, old: Object) -> Object:
    """Keep the allocated values that an update leaves out."""
    spec, before = new["spec"], old["spec"]
    if spec.get("type") == "ExternalName":
        return new
    fields = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    if spec.get("clusterIP", before.get("clusterIP")) != before.get("clusterIP"):
        return new
    kept = {field: before[field] for field in fields if field in before and not spec.get(field)}
    if spec.get("type") == before.get("type"):
        kept["ports"] = _with_old_node_ports(spec.get("ports") or [], before.get("ports") or [])
    return {**new, "spec": {**spec, **kept}}


def _with_old_node_ports(ports: list[Object], before: list[Object]) -> list[Object]:
    known = {(port.get("protocol"), port.get("port")): port["nodePort"] for port in before if port.get("nodePort")}
    return [
        {**port, "nodePort": known[pair]} if not port.get("nodePort") and (pair := _pair(port)) in known else port
        for port in ports
    ]


def _pair(port: Object) -> tuple[str | None, int | None]:
    return port.get("protocol"), port.get("port")


def _family(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _cluster_ip(uid: str) -> str:
    return str(_NETWORK[1 + _hash(uid) % (_NETWORK.num_addresses - 2)])


def _node_port(uid: str, place: int) -> int:
    return _FIRST_NODE_PORT + _hash(f"{uid}/{place}") % _NODE_PORTS


def _spec_errors(spec: Object, before: Object) -> list[FieldError]:
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
    found += _ip_errors(spec, before)
    return found + required_choice_errors("spec.type", kind, *_TYPES)


def _external_name_errors(spec: Object) -> list[FieldError]:
    name = spec.get("externalName", "").rstrip(".")
    if not name:
        return [required("spec.externalName")]
    return subdomain_errors_at("spec.externalName", name)


def _ip_errors(spec: Object, before: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for place, address in enumerate(spec.get("clusterIPs") or ()):
        if address != HEADLESS:
            found += ip_errors(index("spec.clusterIPs", place), address, known=before.get("clusterIPs") or ())
    for place, address in enumerate(spec.get("externalIPs") or ()):
        path, known = index("spec.externalIPs", place), before.get("externalIPs") or ()
        found += ip_errors(path, address, known=known) or special_ip_errors(path, address)
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
            found.append(FieldError(FieldErrorType.DUPLICATE, index("spec.ports", place), raw_json(shown)))
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


def _port_text(port: Object) -> str:
    number_on_node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{number_on_node}/{port.get('protocol', '')}"


def _external_address(obj: Object) -> str:
    spec = spec_of(obj)
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    own = spec.get("externalIPs") or []
    if spec.get("type") != "LoadBalancer":
        return ",".join(own) or NONE
    ingress = (status_of(obj).get("loadBalancer") or {}).get("ingress") or ()
    balanced = sorted({entry.get("ip") or entry.get("hostname") or "" for entry in ingress} - {""})
    return ",".join([*balanced, *own]) or "<pending>"


class ServiceStrategy(WithStatus):
    definition = "io.k8s.api.core.v1.Service"
    plural = "services"
    short_names = ("svc",)
    categories = ("all",)
    defaults = {"io.k8s.api.core.v1.Service": _with_defaults}
    columns = (
        NAME,
        text_column("Type", "How the service is reached."),
        text_column("Cluster-IP", "Address inside the cluster."),
        text_column("External-IP", "Addresses outside the cluster."),
        text_column("Port(s)", "Ports, with the node's where there is one."),
        AGE,
        SELECTOR,
    )
    uses_generation = False
    allows_create_on_update = True
    has_own_field_labels = True
    fields = {"spec.clusterIP": reader("spec", "clusterIP"), "spec.type": reader("spec", "type")}

    def validate_name(self, name: str) -> list[str]:
        return label_faults(name)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        return allocate_addresses(super().prepare_create(obj, now))

    def prepare_update(self, new: Object, old: Object) -> Object:
        return allocate_addresses(_keep_allocated(super().prepare_update(new, old), old))

    def validate_create(self, obj: Object) -> list[FieldError]:
        return _spec_errors(obj.get("spec") or {}, {})

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        found: list[FieldError] = []
        address, earlier = spec.get("clusterIP", ""), before.get("clusterIP", "")
        keeps_address = spec.get("type") != "ExternalName" and before.get("type") != "ExternalName"
        if keeps_address and earlier and address != earlier:
            found.append(invalid("spec.clusterIPs[0]", [address] if address else None, "may not change once set"))
        return found + _spec_errors(spec, before)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        spec = spec_of(obj)
        addresses = spec.get("clusterIPs") or [NONE]
        ports = ",".join(_port_text(port) for port in spec.get("ports") or ())
        return [
            name_of(obj),
            spec.get("type", ""),
            addresses[0],
            _external_address(obj),
            ports or NONE,
            age_of(obj, now),
            labels_text(spec.get("selector")),
        ]
