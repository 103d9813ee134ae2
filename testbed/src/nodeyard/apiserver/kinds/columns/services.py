"""The table of services."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import (
    AGE,
    NAME,
    NONE,
    SELECTOR,
    Printer,
    age_of,
    labels_text,
    name_of,
    spec_of,
    status_of,
    text_column,
)
from nodeyard.kube.json import Json, Object


def service_cells(obj: Object, now: datetime) -> list[Json]:
    given = spec_of(obj)
    addresses = given.get("clusterIPs") or [NONE]
    ports = ",".join(_port(port) for port in given.get("ports") or ())
    return [
        name_of(obj),
        given.get("type", ""),
        addresses[0],
        _external_address(obj),
        ports or NONE,
        age_of(obj, now),
        labels_text(given.get("selector")),
    ]


def _port(port: Object) -> str:
    number_on_node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{number_on_node}/{port.get('protocol', '')}"


def _external_address(obj: Object) -> str:
    given = spec_of(obj)
    if given.get("type") == "ExternalName":
        return str(given.get("externalName", ""))
    own = given.get("externalIPs") or []
    if given.get("type") != "LoadBalancer":
        return ",".join(own) or NONE
    ingress = (status_of(obj).get("loadBalancer") or {}).get("ingress") or ()
    balanced = sorted({entry.get("ip") or entry.get("hostname") or "" for entry in ingress} - {""})
    return ",".join([*balanced, *own]) or "<pending>"


SERVICE = Printer(
    (
        NAME,
        text_column("Type", "How the service is reached."),
        text_column("Cluster-IP", "Address inside the cluster."),
        text_column("External-IP", "Addresses outside the cluster."),
        text_column("Port(s)", "Ports, with the node's where there is one."),
        AGE,
        SELECTOR,
    ),
    service_cells,
)
