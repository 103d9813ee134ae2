"""Tables of what keeps pods running."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import (
    AGE,
    CONTAINERS,
    NAME,
    NONE,
    SELECTOR,
    Printer,
    age,
    containers,
    labels,
    name,
    number,
    selector,
    spec,
    status,
    text,
)
from nodeyard.kube import meta
from nodeyard.kube.json import Json, Object


def deployment_cells(obj: Object, now: datetime) -> list[Json]:
    wanted, found = spec(obj), status(obj)
    return [
        name(obj),
        f"{found.get('readyReplicas', 0)}/{wanted.get('replicas', 0)}",
        found.get("updatedReplicas", 0),
        found.get("availableReplicas", 0),
        age(obj, now),
        *containers(wanted.get("template")),
        selector(wanted.get("selector")),
    ]


def replica_set_cells(obj: Object, now: datetime) -> list[Json]:
    wanted, found = spec(obj), status(obj)
    return [
        name(obj),
        wanted.get("replicas", 0),
        found.get("replicas", 0),
        found.get("readyReplicas", 0),
        age(obj, now),
        *containers(wanted.get("template")),
        selector(wanted.get("selector")),
    ]


def stateful_set_cells(obj: Object, now: datetime) -> list[Json]:
    wanted = spec(obj)
    ready = f"{status(obj).get('readyReplicas', 0)}/{wanted.get('replicas', 0)}"
    return [name(obj), ready, age(obj, now), *containers(wanted.get("template"))]


def daemon_set_cells(obj: Object, now: datetime) -> list[Json]:
    wanted, found = spec(obj), status(obj)
    template = wanted.get("template") or {}
    return [
        name(obj),
        found.get("desiredNumberScheduled", 0),
        found.get("currentNumberScheduled", 0),
        found.get("numberReady", 0),
        found.get("updatedNumberScheduled", 0),
        found.get("numberAvailable", 0),
        labels((template.get("spec") or {}).get("nodeSelector")),
        age(obj, now),
        *containers(template),
        selector(wanted.get("selector")),
    ]


def revision_cells(obj: Object, now: datetime) -> list[Json]:
    owner = meta.controller_of(obj)
    controller = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        kind = f"{owner['kind']}.{group}" if group else owner["kind"]
        controller = f"{kind.lower()}/{owner['name']}"
    return [name(obj), controller, obj.get("revision", 0), age(obj, now)]


DEPLOYMENT = Printer(
    (
        NAME,
        text("Ready", "Ready pods, of those wanted."),
        text("Up-to-date", "Pods of the current template."),
        text("Available", "Pods that have been ready long enough."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    deployment_cells,
)
REPLICA_SET = Printer(
    (
        NAME,
        number("Desired", "Pods wanted."),
        number("Current", "Pods there are."),
        number("Ready", "Pods that are ready."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    replica_set_cells,
)
STATEFUL_SET = Printer((NAME, text("Ready", "Ready pods, of those wanted."), AGE, *CONTAINERS), stateful_set_cells)
DAEMON_SET = Printer(
    (
        NAME,
        number("Desired", "Nodes that should run a pod."),
        number("Current", "Nodes that run one."),
        number("Ready", "Nodes whose pod is ready."),
        number("Up-to-date", "Nodes whose pod is of the current template."),
        number("Available", "Nodes whose pod has been ready long enough."),
        text("Node Selector", "Which nodes are meant."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    daemon_set_cells,
)
CONTROLLER_REVISION = Printer(
    (NAME, text("Controller", "Whose revision it is."), text("Revision", "Its number."), AGE), revision_cells
)
