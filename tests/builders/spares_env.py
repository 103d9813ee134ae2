"""Nodes and NodeTemplates of one test on a shared server; they are deleted after the test.

The operator under test sees the whole cluster, so all objects of an environment have its name as prefix and label, and
selectors match that label.
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
ENV_LABEL = "env.test/name"
NOT_READY = "node.kubernetes.io/not-ready"
SPARE = {"key": names.SPARE_TAINT, "value": "true", "effect": "NoSchedule"}

_numbers = itertools.count(1)


class SparesEnv:
    def __init__(self, rest: Rest) -> None:
        self.rest = rest
        self.name = f"env{next(_numbers)}"
        self._nodes: list[str] = []
        self._templates: list[str] = []
        self._pods: list[str] = []

    # creating

    def spare(self, word: str, *, zone: str = "a", taint: dict[str, str] | None = None, **labels: str) -> str:
        """Create a ready spare node; return its name."""
        return self.node(word, zone=zone, taints=[taint or SPARE], **labels)

    def spares(self, count: int, zones: str = "abc", start: int = 0) -> list[str]:
        """Create spare nodes, round robin over the zones."""
        numbers = range(start, start + count)
        return [self.spare(f"n{number:03d}", zone=zones[number % len(zones)]) for number in numbers]

    def node(self, word: str, *, zone: str = "a", taints: list[dict[str, str]] | None = None, **labels: str) -> str:
        name = f"{self.name}-{word}"
        self._nodes.append(name)
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {ENV_LABEL: self.name, ZONE: f"zone-{zone}", **labels}},
            "spec": {"taints": taints or []},
            "status": {"conditions": [ready], "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        }
        self.rest.create(node)
        return name

    def template(self, word: str, nodes: int, **spec: Any) -> str:
        """Create a NodeTemplate with a label and a taint; return its name. Fields of the spec have their JSON names."""
        name = f"{self.name}-{word}"
        self._templates.append(name)
        body = {
            "selector": {"matchLabels": {ENV_LABEL: self.name}},
            "nodes": nodes,
            "template": node_metadata(word),
            **spec,
        }
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
        metadata = {"name": name, "namespace": "default", "labels": {ENV_LABEL: self.name, **labels}}
        self.rest.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        ready = {"type": "Ready", "status": "True"}
        self.rest.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": [ready]}},
                       content_type=MERGE)  # fmt: skip
        return name

    # changing

    def change(self, name: str, /, **spec: Any) -> None:
        self.rest.call("PATCH", f"{TEMPLATES}/{name}", {"spec": spec}, content_type=MERGE)

    def annotate(self, template: str, **annotations: str) -> None:
        keys = {f"nodeyard.dev/{key}": value for key, value in annotations.items()}
        self.rest.call("PATCH", f"{TEMPLATES}/{template}", {"metadata": {"annotations": keys}}, content_type=MERGE)

    def patch(self, node: str, body: Any, content_type: str = MERGE) -> Any:
        return self.rest.call("PATCH", f"{NODES}/{node}", body, content_type=content_type)

    def delete(self, template: str) -> None:
        self.rest.call("DELETE", f"{TEMPLATES}/{template}")

    # reading

    def get_node(self, name: str) -> Any:
        return self.rest.get(f"{NODES}/{name}")

    def get_template(self, template: str) -> Any:
        """Return the NodeTemplate, or None."""
        try:
            return self.rest.get(f"{TEMPLATES}/{template}")
        except RestError as error:
            if error.status != 404:
                raise
            return None

    def all(self) -> list[Any]:
        nodes = self.rest.get(f"{NODES}?labelSelector={ENV_LABEL}%3D{self.name}")["items"]
        return sorted(nodes, key=lambda node: str(node["metadata"]["name"]))

    def owned(self, template: str) -> list[Any]:
        """Return the nodes with the label of a template."""
        return [node for node in self.all() if node["metadata"]["labels"].get(names.TEMPLATE_LABEL) == template]

    def zones(self, template: str) -> dict[str, int]:
        found = [node["metadata"]["labels"][ZONE] for node in self.owned(template)]
        return {zone: found.count(zone) for zone in sorted(set(found))}

    def versions(self) -> dict[str, str]:
        """Return the resourceVersion of all objects, to detect any write."""
        nodes = {node["metadata"]["name"]: node["metadata"]["resourceVersion"] for node in self.all()}
        return {**nodes, **{name: self.get_template(name)["metadata"]["resourceVersion"] for name in self._templates}}

    def condition(self, template: str, kind: str) -> tuple[str, str]:
        """Return status and reason of a condition of the current generation, else empty strings."""
        seen = self.get_template(template)
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

    def wait_for_owned(self, template: str, count: int, timeout: float = 20.0) -> list[Any]:
        """Wait until the template has this many nodes and its status reports them."""

        def are_there() -> list[Any] | None:
            found = self.owned(template)
            return found or [None] if len(found) == count and self._reports(template, count) else None

        return until(are_there, f"{template} has {count} nodes", timeout)

    def wait_for_condition(self, template: str, kind: str, status: str, reason: str) -> None:
        until(lambda: self.condition(template, kind) == (status, reason), f"{template}: {kind} is {status}, {reason}")

    def wait_for_event(self, template: str, reason: str, timeout: float = 20.0) -> list[Any]:
        return until(lambda: self.events(template, reason), f"an event {reason} on {template}", timeout)

    def wait_until_nodes_ready(self) -> None:
        """Wait until the node lifecycle controller has removed its taints."""
        until(lambda: not any(NOT_READY in taints(node) for node in self.all()), "no node is thought not to be ready")

    def _reports(self, template: str, count: int) -> bool:
        seen = self.get_template(template)
        status = seen.get("status", {})
        is_current = status.get("reconcileInfo", {}).get("observedGeneration") == seen["metadata"]["generation"]
        return bool(is_current and status["currentNodes"] == count)

    # cleanup

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
        """Remove the finalizer: the operator may be gone already."""
        try:
            body = [{"op": "remove", "path": "/metadata/finalizers"}]
            self.rest.call("PATCH", f"{TEMPLATES}/{template}", body, content_type=JSON_PATCH)
        except RestError as error:
            if error.status not in (404, 422):
                raise


def node_metadata(word: str) -> dict[str, Any]:
    """Return the default metadata and taints that a template sets on nodes."""
    return {
        "metadata": {"labels": {"team": word}, "annotations": {"owner": word}},
        "spec": {"taints": [{"key": "team", "value": word, "effect": "NoSchedule"}]},
    }


def taints(node: Any) -> dict[str, tuple[str, str]]:
    """Return value and effect of the taints, by key."""
    return {each["key"]: (each.get("value", ""), each["effect"]) for each in node["spec"].get("taints", [])}


def labels(node: Any) -> dict[str, str]:
    found: dict[str, str] = node["metadata"]["labels"]
    return found
