"""Roles, nodes and profiles of one test in a namespace of their own; the test acts as the service operators.

A service operator reports what it has deployed: `env.report("n0")` does so for a node's compute.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from nodeyard.capabilities.profiles import names
from nodeyard.kube.json import Object
from nodeyard.testing.rest import Rest, RestError
from nodeyard.testing.session import MERGE
from nodeyard.testing.wait import until

from .profiles import compute_profile_body, network_profile_body, node_body, role_body, telemetry_profile_body

PATIENCE = 30.0
_PLURALS = {
    names.NODE_KIND: (names.DATAPLANE_API_VERSION, names.NODE_PLURAL),
    names.ROLE_KIND: (names.DATAPLANE_API_VERSION, names.ROLE_PLURAL),
    names.COMPUTE_PROFILE_KIND: (names.NOVA_API_VERSION, names.COMPUTE_PROFILE_PLURAL),
    names.COMPUTE_KIND: (names.NOVA_API_VERSION, names.COMPUTE_PLURAL),
    names.NETWORK_PROFILE_KIND: (names.NEUTRON_API_VERSION, names.NETWORK_PROFILE_PLURAL),
    names.AGENT_KIND: (names.NEUTRON_API_VERSION, names.AGENT_PLURAL),
    names.TELEMETRY_PROFILE_KIND: (names.TELEMETRY_API_VERSION, names.TELEMETRY_PROFILE_PLURAL),
}
_numbers = itertools.count(1)


class ProfilesEnv:
    def __init__(self, rest: Rest) -> None:
        self.rest = rest
        self.namespace = f"dataplane{next(_numbers)}"
        rest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})

    # making and changing

    def role(self, name: str = "edpm-compute", **given: Any) -> str:
        self.rest.create(role_body(name, namespace=self.namespace, **given))
        return name

    def node(self, name: str, role: str = "edpm-compute", **given: Any) -> str:
        self.rest.create(node_body(name, namespace=self.namespace, role=role, **given))
        return name

    def compute_profile(self, name: str, config: str, **given: Any) -> str:
        self.rest.create(compute_profile_body(name, config, namespace=self.namespace, **given))
        return name

    def network_profile(self, name: str, config: str, **given: Any) -> str:
        self.rest.create(network_profile_body(name, config, namespace=self.namespace, **given))
        return name

    def telemetry_profile(self, name: str, config: str, **given: Any) -> str:
        self.rest.create(telemetry_profile_body(name, config, namespace=self.namespace, **given))
        return name

    def patch(self, kind: str, name: str, body: Object, part: str = "") -> Object:
        found: Object = self.rest.call("PATCH", f"{self.path(kind, name)}{part}", body, content_type=MERGE)
        return found

    def annotate(self, kind: str, name: str, annotations: dict[str, str | None]) -> None:
        self.patch(kind, name, {"metadata": {"annotations": annotations}})

    def delete(self, kind: str, name: str) -> None:
        self.rest.call("DELETE", self.path(kind, name))

    def report(self, node: str, kind: str = names.COMPUTE_KIND, *, is_hashed: bool = True) -> None:
        """Act as the service operator: report the desired hash and Ready, or only Ready."""
        asked = self.get(kind, node)["metadata"]["annotations"][names.HASH]
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "Deployed",
            "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }
        reported = {"hash": {names.REPORTED_HASH: asked}} if is_hashed else {}
        self.patch(kind, node, {"status": {**reported, "conditions": [ready]}}, "/status")

    # looking

    def path(self, kind: str, name: str = "") -> str:
        version, plural = _PLURALS[kind]
        return f"/apis/{version}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def get(self, kind: str, name: str) -> Object:
        found: Object = self.rest.get(self.path(kind, name))
        return found

    def exists(self, kind: str, name: str) -> bool:
        return self.rest.exists(self.path(kind, name))

    def find(self, kind: str, name: str) -> Object | None:
        try:
            return self.get(kind, name)
        except RestError as error:
            if error.status != 404:
                raise
            return None

    def configuration(self, node: str, service: str) -> Object:
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{names.config_name(node, service)}"
        found: Object = self.rest.get(path)
        return found

    def hash_of(self, node: str, kind: str = names.COMPUTE_KIND) -> str:
        obj = self.find(kind, node)
        return "" if obj is None else obj["metadata"].get("annotations", {}).get(names.HASH, "")

    def choice(self, node: str, service: str) -> Object:
        found: Object = ((self.get(names.NODE_KIND, node).get("status") or {}).get("profiles") or {}).get(service) or {}
        return found

    def condition(self, kind: str, name: str, type: str) -> Object:
        conditions = (self.get(kind, name).get("status") or {}).get("conditions") or ()
        return next((each for each in conditions if each["type"] == type), {})

    def events(self, kind: str, reason: str) -> list[Object]:
        found = self.rest.get(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")["items"]
        return [each for each in found if (each["regarding"].get("kind"), each["reason"]) == (kind, reason)]

    # waiting

    def wait_until(self, condition: Callable[[], Any], what: str, timeout: float = PATIENCE) -> Any:
        return until(condition, what, timeout)

    def wait_until_settled(self, node: str, profile: str) -> Object:
        """Check that the node's compute has this profile and its desired hash is reported."""
        self.wait_until(lambda: self._profile_of(node) == profile, f"{node} has {profile}")
        self.report(node)
        self.wait_until(lambda: self.is_ready(node), f"{node} is ready")
        return self.get(names.COMPUTE_KIND, node)

    def is_ready(self, node: str) -> bool:
        return self.condition(names.NODE_KIND, node, "Ready").get("status") == "True"

    def _profile_of(self, node: str) -> str:
        obj = self.find(names.COMPUTE_KIND, node)
        return "" if obj is None else (obj["spec"].get("computeProfileName") or "")

    def close(self) -> None:
        """Delete the nodes first, so a running operator does not write into a terminating namespace."""
        self.rest.call("DELETE", self.path(names.NODE_KIND))
        self.wait_until(lambda: not self.rest.get(self.path(names.NODE_KIND))["items"], "all nodes are gone")
        self.rest.call("DELETE", f"/api/v1/namespaces/{self.namespace}")
