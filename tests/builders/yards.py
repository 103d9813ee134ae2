"""Spare nodes and templates of one test on a shared server, through its REST interface; they go with the test.

The operator under test sees the whole cluster, so everything is named and labelled as this yard's, and selectors ask
for that label.
"""

from __future__ import annotations

import itertools
from typing import Any

from nodeyard.capabilities.spares import names
from nodeyard.kube.names import ZONE
from nodeyard.testing.rest import Rest, RestError
from nodeyard.testing.session import JSON_PATCH, MERGE
from nodeyard.testing.wait import until

TEMPLATES = f"/apis/{names.API_VERSION}/{names.PLURAL}"
NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/events"
YARD = "yard.test/name"
NOT_READY = "node.kubernetes.io/not-ready"
SPARE = {"key": names.SPARE_TAINT, "value": "true", "effect": "NoSchedule"}

_numbers = itertools.count(1)


class Yard:
    def __init__(self, rest: Rest) -> None:
        self.rest = rest
        self.name = f"yard{next(_numbers)}"
        self._nodes: list[str] = []
        self._templates: list[str] = []
        self._pods: list[str] = []

    # making things

    def spare(self, word: str, *, zone: str = "a", taint: dict[str, str] | None = None, **labels: str) -> str:
        """A spare node that is ready, its word made into a name of this yard."""
        return self.node(word, zone=zone, taints=[taint or SPARE], **labels)

    def spares(self, count: int, zones: str = "abc", start: int = 0) -> list[str]:
        """Spread over the zones in turn."""
        numbers = range(start, start + count)
        return [self.spare(f"n{number:03d}", zone=zones[number % len(zones)]) for number in numbers]

    def node(self, word: str, *, zone: str = "a", taints: list[dict[str, str]] | None = None, **labels: str) -> str:
        name = f"{self.name}-{word}"
        self._nodes.append(name)
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {YARD: self.name, ZONE: f"zone-{zone}", **labels}},
            "spec": {"taints": taints or []},
            "status": {"conditions": [ready], "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        }
        self.rest.create(node)
        return name

    def template(self, word: str, nodes: int, **spec: Any) -> str:
        """With a label and a taint to be recognised by; fields of the spec as on the wire."""
        name = f"{self.name}-{word}"
        self._templates.append(name)
        body = {"selector": {"matchLabels": {YARD: self.name}}, "nodes": nodes, "template": described(word), **spec}
        kind = {"apiVersion": names.API_VERSION, "kind": names.KIND}
        self.rest.create({**kind, "metadata": {"name": name}, "spec": body})
        return name

    def pod(self, word: str, node: str, **labels: str) -> str:
        name = f"{self.name}-{word}"
        self._pods.append(name)
        spec = {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "none"}],
            "tolerations": [{"operator": "Exists"}],
        }
        metadata = {"name": name, "namespace": "default", "labels": {YARD: self.name, **labels}}
        self.rest.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        ready = {"type": "Ready", "status": "True"}
        self.rest.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": [ready]}},
                       content_type=MERGE)  # fmt: skip
        return name

    # changing things

    def change(self, name: str, /, **spec: Any) -> None:
        self.rest.call("PATCH", f"{TEMPLATES}/{name}", {"spec": spec}, content_type=MERGE)

    def annotate(self, template: str, **annotations: str) -> None:
        keys = {f"nodeyard.dev/{key}": value for key, value in annotations.items()}
        self.rest.call("PATCH", f"{TEMPLATES}/{template}", {"metadata": {"annotations": keys}}, content_type=MERGE)

    def patch(self, node: str, body: Any, content_type: str = MERGE) -> Any:
        return self.rest.call("PATCH", f"{NODES}/{node}", body, content_type=content_type)

    def delete(self, template: str) -> None:
        self.rest.call("DELETE", f"{TEMPLATES}/{template}")

    # looking

    def get(self, name: str) -> Any:
        return self.rest.get(f"{NODES}/{name}")

    def see(self, template: str) -> Any:
        """The template, or None when it is gone."""
        try:
            return self.rest.get(f"{TEMPLATES}/{template}")
        except RestError as error:
            if error.status != 404:
                raise
            return None

    def all(self) -> list[Any]:
        nodes = self.rest.get(f"{NODES}?labelSelector={YARD}%3D{self.name}")["items"]
        return sorted(nodes, key=lambda node: str(node["metadata"]["name"]))

    def owned(self, template: str) -> list[Any]:
        """By its label, as anyone would ask."""
        return [node for node in self.all() if node["metadata"]["labels"].get(names.TEMPLATE_LABEL) == template]

    def zones(self, template: str) -> dict[str, int]:
        found = [node["metadata"]["labels"][ZONE] for node in self.owned(template)]
        return {zone: found.count(zone) for zone in sorted(set(found))}

    def versions(self) -> dict[str, str]:
        """The resourceVersion of everything there is, which any write would change."""
        nodes = {node["metadata"]["name"]: node["metadata"]["resourceVersion"] for node in self.all()}
        return {**nodes, **{name: self.see(name)["metadata"]["resourceVersion"] for name in self._templates}}

    def condition(self, template: str, kind: str) -> tuple[str, str]:
        """Status and reason, of the current generation; empty before that is known."""
        seen = self.see(template)
        status = seen.get("status", {})
        if status.get("reconcileInfo", {}).get("observedGeneration") != seen["metadata"]["generation"]:
            return "", ""
        found = [each for each in status["conditions"] if each["type"] == kind]
        return (found[0]["status"], found[0]["reason"]) if found else ("", "")

    def events(self, template: str, reason: str = "") -> list[Any]:
        events = self.rest.get(EVENTS)["items"]
        mine = [each for each in events if each["regarding"].get("name") == template]
        return [each for each in mine if not reason or each["reason"] == reason]

    # waiting

    def until_owned(self, template: str, count: int, timeout: float = 20.0) -> list[Any]:
        """So many nodes, and the status says so."""

        def are_there() -> list[Any] | None:
            found = self.owned(template)
            return found or [None] if len(found) == count and self._tells(template, count) else None

        return until(are_there, f"{template} has {count} nodes", timeout)

    def until_condition(self, template: str, kind: str, status: str, reason: str) -> None:
        until(lambda: self.condition(template, kind) == (status, reason), f"{template}: {kind} is {status}, {reason}")

    def until_told(self, template: str, reason: str, timeout: float = 20.0) -> list[Any]:
        return until(lambda: self.events(template, reason), f"an event {reason} on {template}", timeout)

    def until_settled(self) -> None:
        """The server's own controllers have seen that the nodes are ready."""
        until(lambda: not any(NOT_READY in taints(node) for node in self.all()), "no node is thought not to be ready")

    def _tells(self, template: str, count: int) -> bool:
        seen = self.see(template)
        status = seen.get("status", {})
        is_current = status.get("reconcileInfo", {}).get("observedGeneration") == seen["metadata"]["generation"]
        return bool(is_current and status["currentNodes"] == count)

    # going

    def close(self) -> None:
        for name in self._pods:
            self._remove(f"{PODS}/{name}")
        for name in self._templates:
            self._remove(f"{TEMPLATES}/{name}")
            self._unbind(name)
        for name in self._nodes:
            self._remove(f"{NODES}/{name}")

    def _remove(self, path: str) -> None:
        try:
            self.rest.call("DELETE", f"{path}?gracePeriodSeconds=0")
        except RestError as error:
            if error.status != 404:
                raise

    def _unbind(self, template: str) -> None:
        """The operator may be gone already, and nobody else takes its finalizer off."""
        try:
            body = [{"op": "remove", "path": "/metadata/finalizers"}]
            self.rest.call("PATCH", f"{TEMPLATES}/{template}", body, content_type=JSON_PATCH)
        except RestError as error:
            if error.status not in (404, 422):
                raise


def described(word: str) -> dict[str, Any]:
    """What a template says of its nodes unless a test says otherwise."""
    return {
        "metadata": {"labels": {"team": word}, "annotations": {"owner": word}},
        "spec": {"taints": [{"key": "team", "value": word, "effect": "NoSchedule"}]},
    }


def taints(node: Any) -> dict[str, tuple[str, str]]:
    """Value and effect by key."""
    return {each["key"]: (each.get("value", ""), each["effect"]) for each in node["spec"].get("taints", [])}


def labels(node: Any) -> dict[str, str]:
    found: dict[str, str] = node["metadata"]["labels"]
    return found
