"""The table of services."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import (
    AGE,
    NAME,
    NONE,
    SELECTOR,
    Printer,
    age,
    labels,
    name,
    spec,
    status,
    text,
)
from nodeyard.kube.json import Json, Object


def service_cells(obj: Object, now: datetime) -> list[Json]:
    given = spec(obj)
    addresses = given.get("clusterIPs") or [NONE]
    ports = ",".join(_port(port) for port in given.get("ports") or ())
    return [
        name(obj),
        given.get("type", ""),
        addresses[0],
        _external_address(obj),
        ports or NONE,
        age(obj, now),
        labels(given.get("selector")),
    ]


def _port(port: Object) -> str:
    number_on_node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{number_on_node}/{port.get('protocol', '')}"


def _external_address(obj: Object) -> str:
    given = spec(obj)
    if given.get("type") == "ExternalName":
        return str(given.get("externalName", ""))
    own = given.get("externalIPs") or []
    if given.get("type") != "LoadBalancer":
        return ",".join(own) or NONE
    ingress = (status(obj).get("loadBalancer") or {}).get("ingress") or ()
    balanced = sorted({entry.get("ip") or entry.get("hostname") or "" for entry in ingress} - {""})
    return ",".join([*balanced, *own]) or "<pending>"


SERVICE = Printer(
    (
        NAME,
        text("Type", "How the service is reached."),
        text("Cluster-IP", "Address inside the cluster."),
        text("External-IP", "Addresses outside the cluster."),
        text("Port(s)", "Ports, with the node's where there is one."),
        AGE,
        SELECTOR,
    ),
    service_cells,
)
