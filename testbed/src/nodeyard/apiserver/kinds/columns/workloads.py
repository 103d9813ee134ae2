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
    age_of,
    container_cells,
    labels_text,
    name_of,
    number_column,
    selector_text,
    spec_of,
    status_of,
    text_column,
)
from nodeyard.kube import meta
from nodeyard.kube.json import Json, Object


def deployment_cells(obj: Object, now: datetime) -> list[Json]:
    wanted, found = spec_of(obj), status_of(obj)
    return [
        name_of(obj),
        f"{found.get('readyReplicas', 0)}/{wanted.get('replicas', 0)}",
        found.get("updatedReplicas", 0),
        found.get("availableReplicas", 0),
        age_of(obj, now),
        *container_cells(wanted.get("template")),
        selector_text(wanted.get("selector")),
    ]


def replica_set_cells(obj: Object, now: datetime) -> list[Json]:
    wanted, found = spec_of(obj), status_of(obj)
    return [
        name_of(obj),
        wanted.get("replicas", 0),
        found.get("replicas", 0),
        found.get("readyReplicas", 0),
        age_of(obj, now),
        *container_cells(wanted.get("template")),
        selector_text(wanted.get("selector")),
    ]


def stateful_set_cells(obj: Object, now: datetime) -> list[Json]:
    wanted = spec_of(obj)
    ready = f"{status_of(obj).get('readyReplicas', 0)}/{wanted.get('replicas', 0)}"
    return [name_of(obj), ready, age_of(obj, now), *container_cells(wanted.get("template"))]


def daemon_set_cells(obj: Object, now: datetime) -> list[Json]:
    wanted, found = spec_of(obj), status_of(obj)
    template = wanted.get("template") or {}
    return [
        name_of(obj),
        found.get("desiredNumberScheduled", 0),
        found.get("currentNumberScheduled", 0),
        found.get("numberReady", 0),
        found.get("updatedNumberScheduled", 0),
        found.get("numberAvailable", 0),
        labels_text((template.get("spec") or {}).get("nodeSelector")),
        age_of(obj, now),
        *container_cells(template),
        selector_text(wanted.get("selector")),
    ]


def revision_cells(obj: Object, now: datetime) -> list[Json]:
    owner = meta.controller_of(obj)
    controller = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        kind = f"{owner['kind']}.{group}" if group else owner["kind"]
        controller = f"{kind.lower()}/{owner['name']}"
    return [name_of(obj), controller, obj.get("revision", 0), age_of(obj, now)]


DEPLOYMENT = Printer(
    (
        NAME,
        text_column("Ready", "Ready pods, of those wanted."),
        text_column("Up-to-date", "Pods of the current template."),
        text_column("Available", "Pods that have been ready long enough."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    deployment_cells,
)
REPLICA_SET = Printer(
    (
        NAME,
        number_column("Desired", "Pods wanted."),
        number_column("Current", "Pods there are."),
        number_column("Ready", "Pods that are ready."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    replica_set_cells,
)
STATEFUL_SET = Printer(
    (NAME, text_column("Ready", "Ready pods, of those wanted."), AGE, *CONTAINERS), stateful_set_cells
)
DAEMON_SET = Printer(
    (
        NAME,
        number_column("Desired", "Nodes that should run a pod."),
        number_column("Current", "Nodes that run one."),
        number_column("Ready", "Nodes whose pod is ready."),
        number_column("Up-to-date", "Nodes whose pod is of the current template."),
        number_column("Available", "Nodes whose pod has been ready long enough."),
        text_column("Node Selector", "Which nodes are meant."),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    daemon_set_cells,
)
CONTROLLER_REVISION = Printer(
    (NAME, text_column("Controller", "Whose revision it is."), text_column("Revision", "Its number."), AGE),
    revision_cells,
)
