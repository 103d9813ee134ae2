"""Addresses and node ports of services.

The real server keeps a table of those it gave out. Here they follow from the service's uid: two services would have to
meet in a space of a million addresses to share one, and nothing routes to them.
"""

from __future__ import annotations

import hashlib
import ipaddress

from nodeyard.kube import meta
from nodeyard.kube.json import Object

HEADLESS = "None"
_NETWORK = ipaddress.IPv4Network("10.96.0.0/12")
_FIRST_NODE_PORT, _NODE_PORTS = 30000, 2768


def with_addresses(obj: Object) -> Object:
    """The service with the addresses and ports it is to have."""
    spec = obj["spec"]
    if spec.get("type") == "ExternalName":
        return obj
    address = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "") or _address(meta.uid(obj))
    # Who has endpoints of his own making may have them of either family.
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


def with_old_addresses(new: Object, old: Object) -> Object:
    """An update that does not name the addresses keeps them."""
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


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _address(uid: str) -> str:
    return str(_NETWORK[1 + _number(uid) % (_NETWORK.num_addresses - 2)])


def _node_port(uid: str, place: int) -> int:
    return _FIRST_NODE_PORT + _number(f"{uid}/{place}") % _NODE_PORTS
