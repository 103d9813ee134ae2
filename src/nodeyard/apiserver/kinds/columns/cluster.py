"""Tables of everything that does not run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from nodeyard.apiserver.kinds.columns.printer import (
    AGE,
    NAME,
    NONE,
    SELECTOR,
    Printer,
    age,
    labels,
    name,
    number,
    spec,
    status,
    text,
)
from nodeyard.kube.json import Json, Object
from nodeyard.kube.selectors import from_object

_UNSET = "<unset>"
_NOT_GIVEN = "N/A"


def namespace_cells(obj: Object, now: datetime) -> list[Json]:
    return [name(obj), status(obj).get("phase", ""), age(obj, now)]


def secret_cells(obj: Object, now: datetime) -> list[Json]:
    return [name(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def config_map_cells(obj: Object, now: datetime) -> list[Json]:
    return [name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


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


def budget_cells(obj: Object, now: datetime) -> list[Json]:
    given = spec(obj)
    return [
        name(obj),
        _NOT_GIVEN if given.get("minAvailable") is None else str(given["minAvailable"]),
        _NOT_GIVEN if given.get("maxUnavailable") is None else str(given["maxUnavailable"]),
        status(obj).get("disruptionsAllowed", 0),
        age(obj, now),
    ]


def binding_cells(obj: Object, now: datetime) -> list[Json]:
    reference = obj.get("roleRef") or {}
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        by_kind.setdefault(subject.get("kind", ""), []).append(_subject(subject))
    return [
        name(obj),
        f"{reference.get('kind', '')}/{reference.get('name', '')}",
        age(obj, now),
        ", ".join(by_kind["User"]),
        ", ".join(by_kind["Group"]),
        ", ".join(by_kind["ServiceAccount"]),
    ]


def _subject(subject: Object) -> str:
    named = str(subject.get("name", ""))
    return f"{subject['namespace']}/{named}" if subject.get("namespace") else named


def webhook_cells(obj: Object, now: datetime) -> list[Json]:
    return [name(obj), len(obj.get("webhooks") or ()), age(obj, now)]


def policy_cells(obj: Object, now: datetime) -> list[Json]:
    given = spec(obj)
    kind = given.get("paramKind")
    shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else _UNSET
    return [name(obj), len(given.get("validations") or ()), shown, age(obj, now)]


def policy_binding_cells(obj: Object, now: datetime) -> list[Json]:
    given = spec(obj)
    return [name(obj), given.get("policyName", ""), _parameters(given.get("paramRef")), age(obj, now)]


def _parameters(reference: Mapping[str, Any] | None) -> str:
    if reference and reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    if reference and reference.get("selector") is not None:
        return str(from_object(reference["selector"]))
    return _UNSET


NAMESPACE = Printer((NAME, text("Status", "Active, or being deleted."), AGE), namespace_cells)
SECRET = Printer(
    (NAME, text("Type", "What kind of secret it is."), text("Data", "How many keys it has."), AGE), secret_cells
)
CONFIG_MAP = Printer((NAME, text("Data", "How many keys it has."), AGE), config_map_cells)
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
BUDGET = Printer(
    (
        NAME,
        text("Min Available", "Pods that must stay."),
        text("Max Unavailable", "Pods that may be missing."),
        number("Allowed Disruptions", "Pods that may be evicted now."),
        AGE,
    ),
    budget_cells,
)
BINDING = Printer(
    (
        NAME,
        text("Role", "The role that is granted."),
        AGE,
        text("Users", "Users it is granted to.", wide=True),
        text("Groups", "Groups it is granted to.", wide=True),
        text("ServiceAccounts", "Service accounts it is granted to.", wide=True),
    ),
    binding_cells,
)
WEBHOOKS = Printer((NAME, number("Webhooks", "How many webhooks it registers."), AGE), webhook_cells)
POLICY = Printer(
    (
        NAME,
        number("Validations", "How many expressions it checks."),
        text("ParamKind", "The kind of its parameters."),
        AGE,
    ),
    policy_cells,
)
POLICY_BINDING = Printer(
    (NAME, text("PolicyName", "The policy it puts to use."), text("ParamRef", "The parameters it uses."), AGE),
    policy_binding_cells,
)
