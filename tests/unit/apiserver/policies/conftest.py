"""The parts of a server that policies need, and a builder of policies."""

from typing import Any

import pytest

from nodeyard.apiserver.access import AccessControl
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.expressions import Binder
from nodeyard.apiserver.admission.namespaces import NAMESPACES, Namespaces
from nodeyard.apiserver.admission.policies.index import BINDINGS, POLICIES, PolicyIndex
from nodeyard.apiserver.admission.policies.params import Params
from nodeyard.apiserver.admission.policies.plugin import ValidatingPolicies
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.resources import GroupResource, Resource, Strategy, Version
from nodeyard.apiserver.store import Store
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.worker_thread import WorkerThread
from nodeyard.process.clock import VirtualClock
from nodeyard.schema.model import Schema


def resource(plural: str, kind: str, group: str = "", *, versions: str = "v1", namespaced: bool = True) -> Resource:
    known = {name: Version(name, Schema()) for name in versions.split()}
    return Resource(group, kind, plural, kind.lower(), namespaced, known, versions.split()[0], Strategy())


CONFIGMAPS = resource("configmaps", "ConfigMap")
NODES = resource("nodes", "Node", namespaced=False)
WIDGETS = resource("widgets", "Widget", "example.com", versions="v2 v1")
ALL_CONFIGMAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}


class Cluster:
    def __init__(self) -> None:
        self.store = Store()
        access = AccessControl(self.store, VirtualClock())
        namespaces = Namespaces(self.store)
        registry = Registry([CONFIGMAPS, NODES, WIDGETS])
        params = Params(self.store, registry)
        self.plugin = ValidatingPolicies(PolicyIndex(self.store), params, namespaces, Binder(access.authorizer))
        self.put(NAMESPACES, {"metadata": {"name": "ns", "labels": {"team": "a"}}})

    def put(self, key: GroupResource, obj: dict[str, Any]) -> None:
        metadata = obj["metadata"]
        old = self.store.get(key, metadata.get("namespace", ""), metadata["name"])
        self.store.commit(key, obj, {}, expect=old)

    def policy(self, *validations: dict[str, Any], name: str = "p", bind: bool = True, **spec: Any) -> None:
        """Create a policy on all ConfigMaps and its binding `b`, by default with Deny."""
        constraints = spec.pop("matchConstraints", {"resourceRules": [ALL_CONFIGMAPS]})
        full = {"matchConstraints": constraints, "validations": list(validations), **spec}
        self.put(POLICIES, {"metadata": {"name": name}, "spec": full})
        if bind:
            self.bind(policyName=name)

    def bind(self, name: str = "b", **spec: Any) -> None:
        full = {"policyName": "p", "validationActions": ["Deny"], **spec}
        self.put(BINDINGS, {"metadata": {"name": name}, "spec": full})

    def configmap(self, name: str, **data: str) -> None:
        obj = {"metadata": {"name": name, "namespace": "ns", "labels": {"for": "policy"}}, "data": data}
        self.put(GroupResource("", "configmaps"), obj)

    async def judge(self, what: Resource = CONFIGMAPS, operation: str = "CREATE", **more: Any) -> Attributes:
        namespace = more.pop("namespace", "ns" if what.namespaced else "")
        obj = {"kind": what.kind, "metadata": {"name": "c", "namespace": namespace}, "data": {"a": "b"}}
        fields: dict[str, Any] = {
            "operation": operation,
            "resource": what,
            "version": what.storage_version,
            "subresource": "",
            "namespace": namespace,
            "name": "c",
            "object": obj,
            "old": None,
            "user": User("alice", ("dev",)),
            "work": WorkerThread().work(),
        }
        attributes = Attributes(**{**fields, **more})
        await self.plugin.validate(attributes)
        return attributes

    async def refusal(self, *arguments: Any, **more: Any) -> ApiError:
        with pytest.raises(ApiError) as caught:
            await self.judge(*arguments, **more)
        return caught.value

    async def denial(self, *arguments: Any, **more: Any) -> str:
        """Return the message without its common prefix."""
        error = await self.refusal(*arguments, **more)
        return error.message.partition(" denied request: ")[2]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()
