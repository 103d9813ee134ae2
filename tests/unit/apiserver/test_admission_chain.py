"""The admission plugins in order: each sees the changes of earlier ones."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from nodeyard.apiserver.access import AccessControl
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.chain import Chain
from nodeyard.apiserver.admission.namespaces import NAMESPACES
from nodeyard.apiserver.admission.policies.index import BINDINGS, POLICIES
from nodeyard.apiserver.admission.webhooks.configurations import VALIDATING
from nodeyard.apiserver.admission.webhooks.endpoints import ServiceReference, read_address
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.resources import GroupResource, Resource, Strategy, Version
from nodeyard.apiserver.store import Store
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.worker_thread import WorkerThread
from nodeyard.process.clock import VirtualClock
from nodeyard.schema.model import Schema


def resource(kind: str, group: str = "", plural: str = "", *, namespaced: bool = True) -> Resource:
    versions = {"v1": Version("v1", Schema())}
    return Resource(group, kind, plural or f"{kind.lower()}s", kind.lower(), namespaced, versions, "v1", Strategy())


POD = resource("Pod")
ROLE = resource("ClusterRole", "rbac.authorization.k8s.io", namespaced=False)
POLICY = resource(
    "ValidatingAdmissionPolicy", "admissionregistration.k8s.io", "validatingadmissionpolicies", namespaced=False
)


class Host:
    """The parts of a server that the chain needs."""

    def __init__(self) -> None:
        self.store = Store()
        self.registry = Registry([POD])
        self.access = AccessControl(self.store, VirtualClock())
        self.chain = Chain(self, {"hook.ns": "127.0.0.1:1"})

    def put(self, key: GroupResource, name: str, **content: Any) -> None:
        self.store.commit(key, {"metadata": {"name": name}, **content}, {}, expect=None)

    async def admit(self, what: Resource, obj: dict[str, Any]) -> Attributes:
        attributes = Attributes(
            operation="CREATE",
            resource=what,
            version="v1",
            subresource="",
            namespace="ns" if what.namespaced else "",
            name="x",
            object={"metadata": {"name": "x"}, **obj},
            old=None,
            user=User("alice"),
            work=WorkerThread().work(),
        )
        await self.chain.mutate(attributes)
        await self.chain.validate(attributes)
        return attributes

    async def refusal(self, what: Resource, obj: dict[str, Any]) -> ApiError:
        with pytest.raises(ApiError) as caught:
            await self.admit(what, obj)
        return caught.value


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    made = Host()
    made.put(NAMESPACES, "ns", status={"phase": "Active"})
    yield made
    await made.chain.close()


async def test_a_pod_gets_a_priority_and_default_tolerations(host: Host) -> None:
    attributes = await host.admit(POD, {"spec": {}})
    assert attributes.object is not None
    spec = attributes.object["spec"]
    assert spec["priority"] == 0
    assert [toleration["key"] for toleration in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


async def test_policies_see_the_changes_of_built_in_plugins(host: Host) -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    spec = {
        "matchConstraints": {"resourceRules": [everything]},
        "validations": [{"expression": "object.spec.priority != 0", "message": "priority 0"}],
    }
    host.put(POLICIES, "p", spec=spec)
    host.put(BINDINGS, "b", spec={"policyName": "p", "validationActions": ["Deny"]})
    assert (await host.refusal(POD, {"spec": {}})).message.endswith("denied request: priority 0")


async def test_a_role_beyond_ones_own_rights_is_refused(host: Host) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
    assert (
        "attempting to grant RBAC permissions not currently held"
        in (await host.refusal(ROLE, {"rules": rules})).message
    )


async def test_a_policy_that_does_not_compile_is_refused(host: Host) -> None:
    error = await host.refusal(POLICY, {"spec": {"validations": [{"expression": "object.x =="}]}})
    assert (error.code, error.reason) == (422, "Invalid")


async def test_a_webhooks_service_is_looked_for_where_the_options_say(host: Host) -> None:
    webhook = {
        "name": "h.example.com",
        "clientConfig": {"service": {"name": "hook", "namespace": "ns"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    host.put(VALIDATING, "v", webhooks=[webhook])
    error = await host.refusal(POD, {"spec": {}})
    assert (
        'Post "https://hook.ns.svc:443/?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
        in error.message
    )
    assert host.chain.services.resolve(ServiceReference("hook", "ns", 443)) == ("127.0.0.1", 1)


@pytest.mark.parametrize(
    ("text", "address"), [("127.0.0.1:8443", ("127.0.0.1", 8443)), ("hooks.local", ("hooks.local", 443))]
)
def test_an_address_is_a_host_and_perhaps_a_port(text: str, address: tuple[str, int]) -> None:
    assert read_address(text) == address
