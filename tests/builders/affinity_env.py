"""AffinityClasses, Tenants, applications and pods on a shared server; the test acts as Flux and workload controllers.

env.affinity_class("dc1", nodeSelector={"zone": "dc1"})
home = env.tenant("acme", defaultAffinityClass="dc1")            its namespace, ready
env.application("Postgres", home, "main-db")
env.install(home, "postgres-main-db")                            the StatefulSet that its chart would make
env.pod(home, "postgres-main-db", nodeSelector={"zone": "dc1"})  the answer of the server to a pod of it
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import yaml

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.kube.json import Object
from nodeyard.sim import stand_in_crds as stand_ins
from nodeyard.testing import third_party_crds
from nodeyard.testing.operators import LOCAL_WEBHOOKS, Operators
from nodeyard.testing.session import Response, Session
from nodeyard.testing.wait import until

from .rule_webhooks import MUTATING, VALIDATING, discard

PATIENCE = 60.0
WEBHOOKS = "nodeyard-affinity"
ROOT = names.TENANT_ROOT
GONE = (404,)
SCHEMA = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
CHART = {"kind": "ExternalArtifact", "name": "chart", "namespace": "cozy-system"}
CONTAINERS = [{"name": "main", "image": "main:1"}]
DRY = {"dryRun": "All"}

_plurals = {
    names.CLASS_KIND: (names.API_VERSION, names.CLASS_PLURAL, False),
    names.DEFINITION_KIND: (names.API_VERSION, names.DEFINITION_PLURAL, False),
    names.TENANT_KIND: (names.APPS_API_VERSION, names.TENANT_PLURAL, True),
    names.RELEASE_KIND: (names.FLUX_API_VERSION, names.RELEASE_PLURAL, True),
    "Namespace": ("v1", "namespaces", False),
    "Secret": ("v1", "secrets", True),
    "Pod": ("v1", "pods", True),
    "Node": ("v1", "nodes", False),
    "StatefulSet": ("apps/v1", "statefulsets", True),
    "Deployment": ("apps/v1", "deployments", True),
    "ReplicaSet": ("apps/v1", "replicasets", True),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions", False),
}
_numbers = itertools.count(1)


def install_crds(api: Any) -> None:
    """Install our CRDs and those of Flux: the real ones on the real server, stand-ins on the embedded one."""
    flux = third_party_crds.definitions("flux-helm") if api.is_real else stand_ins.definitions("flux")
    third_party_crds.install(api.rest, [*AFFINITY.definitions(), *flux])


def unique(word: str) -> str:
    """Return a unique name of lower case letters and digits."""
    return f"{word}{next(_numbers)}"


@contextmanager
def run_affinity_env(api: Any) -> Iterator[AffinityEnv]:
    """Run an environment with operators of its own, which run until all objects are deleted.

    Their webhooks are unregistered in any case: they would affect later tests on this server.
    """
    with ExitStack() as ending:
        env = AffinityEnv(api)
        env.operators = Operators(api, pytest.fail)
        ending.callback(env.unregister)
        ending.callback(env.operators.close)
        ending.callback(env.close)
        yield env


class AffinityEnv:
    def __init__(self, api: Any) -> None:
        self.api = api
        self.http = Session(api.url, api.authority.pem, api.admin_token, keep_alive=True)
        self.plurals = dict(_plurals)
        self._created: list[str] = []
        self.operator: Any = None
        self.operators: Any = None
        self._ensure(ROOT)

    def _ensure(self, namespace: str) -> None:
        answer = self.http.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        assert answer.status in (201, 409), answer.content

    # the server

    def path(self, kind: str, name: str = "", namespace: str = "") -> str:
        api_version, plural, namespaced = self.plurals[kind]
        base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        scope = f"/namespaces/{namespace}" if namespaced else ""
        return f"{base}{scope}/{plural}" + (f"/{name}" if name else "")

    def post(self, body: Object, **query: str) -> Response:
        metadata = body["metadata"]
        where = self.path(body["kind"], namespace=metadata.get("namespace", ""))
        answer = self.http.post(where, body, query=query or None)
        if answer.status == 201 and not query:
            self._created.append(f"{where}/{answer.json['metadata']['name']}")
        return answer

    def create(self, body: Object) -> Object:
        answer = self.post(body)
        assert answer.status == 201, answer.content
        found: Object = answer.json
        return found

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        answer = self.http.get(self.path(kind, name, namespace))
        return None if answer.status in GONE else answer.json

    def list(self, kind: str, namespace: str) -> list[Object]:
        """List a namespace; retry while the server reloads a changed CRD."""

        def answered() -> list[Response]:
            answer = self.http.get(self.path(kind, namespace=namespace))
            return [answer] if answer.status == 200 else []

        found: list[Object] = self.wait_until(answered, f"{kind} can be listed")[0].json["items"]
        return found

    def patch(self, kind: str, name: str, body: Object, namespace: str = "", **options: Any) -> Response:
        return self.http.patch(self.path(kind, name, namespace), body, **options)

    def delete(self, kind: str, name: str, namespace: str = "") -> Response:
        return self.http.delete(self.path(kind, name, namespace))

    def wait_until(self, condition: Callable[[], Any], what: str, timeout: float = PATIENCE) -> Any:
        return until(condition, what, timeout)

    def status(self, kind: str, name: str, namespace: str = "") -> Object:
        """Return the status, empty if there is none."""
        return (self.get(kind, name, namespace) or {}).get("status") or {}

    def condition(self, kind: str, name: str, type: str, namespace: str = "") -> Object:
        status = self.status(kind, name, namespace)
        return next((each for each in status.get("conditions") or () if each["type"] == type), {})

    def wait_for_condition(self, kind: str, name: str, type: str, reason: str, namespace: str = "") -> Object:
        """Wait until a condition has this reason; return it."""

        def found() -> Object | None:
            condition = self.condition(kind, name, type, namespace)
            return condition if condition.get("reason") == reason else None

        held: Object = self.wait_until(found, f"{kind} {name} says {type} {reason}")
        return held

    # objects

    def affinity_class(self, name: str, **spec: Any) -> str:
        self.create(class_body(name, **spec))
        return name

    def definition(self, kind: str, **release: Any) -> str:
        body = definition_body(kind, **release)
        self.create(body)
        plural = body["spec"]["application"]["plural"]
        self.plurals[kind] = (names.APPS_API_VERSION, plural, True)
        self.wait_for_condition(names.DEFINITION_KIND, body["metadata"]["name"], "Ready", "Served")
        self.wait_until(lambda: self.http.get(self.path(kind, namespace=ROOT)).status == 200, f"{kind} is served")
        return kind

    def tenant(self, name: str, parent: str = ROOT, **spec: Any) -> str:
        """Create a Tenant; wait for its namespace and return its name."""
        self.create(tenant_body(name, parent, **spec))
        own = names.tenant_namespace(parent, name)
        self.wait_until(lambda: self.values(own), f"tenant {name} has its values")
        return own

    def values(self, namespace: str) -> Object:
        """Return the values in the Secret that applications of a tenant use."""
        secret = self.get("Secret", names.VALUES_SECRET, namespace)
        if secret is None:
            return {}
        found: Object = yaml.safe_load(base64.b64decode(secret["data"][names.VALUES_KEY]))
        return found

    def application(self, kind: str, namespace: str, name: str, **spec: Any) -> Response:
        return self.post(application_body(kind, namespace, name, **spec))

    def application_release(self, kind: str, namespace: str, name: str, **spec: Any) -> Object:
        """Create an application; wait for its HelmRelease and return it."""
        answer = self.application(kind, namespace, name, **spec)
        assert answer.status == 201, answer.content
        release: Object = self.wait_until(lambda: self.release(kind, namespace, name), f"{kind} {name} has a release")
        return release

    def release(self, kind: str, namespace: str, name: str) -> Object | None:
        return self.get(names.RELEASE_KIND, release_name(kind, name), namespace)

    # Flux and controllers

    def report(self, kind: str, namespace: str, name: str, status: str = "True") -> None:
        """Act as Flux: report the release as ready at its generation."""
        release = self.release(kind, namespace, name)
        assert release is not None
        generation = release["metadata"]["generation"]
        ready = {
            "type": "Ready",
            "status": status,
            "reason": "InstallSucceeded" if status == "True" else "InstallFailed",
            "message": "Helm says so",
            "observedGeneration": generation,
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }
        tried = {"lastAttemptedGeneration": generation, "lastAttemptedRevision": "1.2.3"}
        body = {"status": {"observedGeneration": generation, **tried, "conditions": [ready]}}
        where = self.path(names.RELEASE_KIND, release["metadata"]["name"], namespace)
        answer = self.http.patch(f"{where}/status", body)
        assert answer.status == 200, answer.content

    def install(self, namespace: str, release: str, **template: Any) -> Object:
        """Act as Helm: create the StatefulSet of a release, with Flux's label."""
        return self.create(set_body(namespace, release, **template))

    def pod(
        self, namespace: str, owner: str, name: str = "", kind: str = "StatefulSet", query: Any = None, **spec: Any
    ) -> Response:
        """Act as a workload controller: create a pod of this owner."""
        found = self.get(kind, owner, namespace)
        assert found is not None
        reference = owner_of({"apiVersion": self.plurals[kind][0], "kind": kind, **found})
        return self.post(pod_body(namespace, name or unique(f"{owner}-"), [reference], **spec), **(query or {}))

    # the operator

    def start(self, **options: Any) -> Any:
        """Start an operator and wait until the API server calls its webhooks."""
        self.operator = self.operators(AFFINITY, webhooks=LOCAL_WEBHOOKS, **options)
        probe = class_body("probe", nodeSelector={"a": "b"})

        def is_asked() -> bool:
            before = self.operator.metric("nodeyard_webhook_reviews_total")
            self.http.post(self.path(names.CLASS_KIND), probe, query=DRY)
            return bool(self.operator.metric("nodeyard_webhook_reviews_total") > before)

        until(is_asked, "the API server asks", PATIENCE)
        return self.operator

    def close(self) -> None:
        """Delete all objects while the operator runs, which removes its finalizers."""
        for where in reversed(self._created):
            self.http.delete(where, query={"gracePeriodSeconds": 0})
        # The real garbage collector takes its time to learn of new kinds.
        for release in self.http.get(f"/apis/{names.FLUX_API_VERSION}/{names.RELEASE_PLURAL}").json["items"]:
            self.delete(names.RELEASE_KIND, release["metadata"]["name"], release["metadata"]["namespace"])
        left = list(reversed(self._created))

        def is_empty() -> bool:
            # Delete all of them in each attempt: an object that others used was refused before.
            left[:] = [where for where in left if not self._is_gone(where)]
            return not left

        try:
            # Shorter than the timeout of a test, so that the error names the remaining objects.
            until(is_empty, "everything is gone", 90)
        except TimeoutError:
            raise TimeoutError(f"not gone within 90 s: {', '.join(left)}") from None

    def _is_gone(self, where: str) -> bool:
        answer = self.http.delete(where, query={"gracePeriodSeconds": 0})
        return answer.status in GONE

    def unregister(self) -> None:
        discard(self.api.rest, f"{VALIDATING}/{WEBHOOKS}", f"{MUTATING}/{WEBHOOKS}")


# bodies


def class_body(name: str, **spec: Any) -> Object:
    return {"apiVersion": names.API_VERSION, "kind": names.CLASS_KIND, "metadata": {"name": name}, "spec": spec}


def tenant_body(name: str, parent: str = ROOT, **spec: Any) -> Object:
    return {
        "apiVersion": names.APPS_API_VERSION,
        "kind": names.TENANT_KIND,
        "metadata": {"name": name, "namespace": parent},
        "spec": spec,
    }


def definition_body(kind: str, name: str = "", **release: Any) -> Object:
    singular = kind.lower()
    # The plural of the examples: a garbage collector that knows another one takes the owners for deleted.
    plural = f"{singular}es" if singular.endswith("s") else f"{singular}s"
    given = {"kind": kind, "plural": plural, "singular": singular, "openAPISchema": json.dumps(SCHEMA)}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.DEFINITION_KIND,
        "metadata": {"name": name or singular},
        "spec": {"application": given, "release": {"prefix": f"{singular}-", "chartRef": CHART, **release}},
    }


def application_body(kind: str, namespace: str, name: str, **spec: Any) -> Object:
    return {
        "apiVersion": names.APPS_API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def set_body(namespace: str, release: str, **template: Any) -> Object:
    labels = {"app": release}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": release, "namespace": namespace, "labels": {names.FLUX_NAME: release}},
        "spec": {
            "serviceName": release,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": CONTAINERS, **template}},
        },
    }


def pod_body(namespace: str, name: str, owners: list[Object], labels: Any = None, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": owners, "labels": labels or {}},
        "spec": {"containers": CONTAINERS, **spec},
    }


def owner_of(obj: Object) -> Object:
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def release_name(kind: str, name: str) -> str:
    return f"{kind.lower()}-{name}"
