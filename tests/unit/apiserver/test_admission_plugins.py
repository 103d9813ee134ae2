"""The built-in admission plugins."""

from typing import Any

import pytest

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.namespaces import NAMESPACES, Namespaces
from nodeyard.apiserver.admission.plugins import (
    DefaultTolerationSeconds,
    NamespaceLifecycle,
    Priority,
    TaintNodesByCondition,
)
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.resources import Resource, Strategy, Version
from nodeyard.apiserver.store import Store
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.worker_thread import WorkerThread
from nodeyard.schema.model import Schema


def resource(kind: str, *, namespaced: bool = True) -> Resource:
    plural = kind.lower() + "s"
    return Resource("", kind, plural, kind.lower(), namespaced, {"v1": Version("v1", Schema())}, "v1", Strategy())


POD, NODE, NAMESPACE = resource("Pod"), resource("Node", namespaced=False), resource("Namespace", namespaced=False)


def write(what: Resource, operation: str = "CREATE", **more: Any) -> Attributes:
    fields: dict[str, Any] = {
        "operation": operation,
        "resource": what,
        "version": "v1",
        "subresource": "",
        "namespace": "ns" if what.namespaced else "",
        "name": "x",
        "object": {"metadata": {"name": "x"}, "spec": more.pop("spec", {})},
        "old": None,
        "user": User("alice"),
        "work": WorkerThread().work(),
    }
    return Attributes(**{**fields, **more})


# NamespaceLifecycle


class Cluster:
    def __init__(self) -> None:
        self.store = Store()
        self.plugin = NamespaceLifecycle(Namespaces(self.store))

    def namespace(self, name: str, phase: str = "Active") -> None:
        old = self.store.get(NAMESPACES, "", name)
        self.store.commit(NAMESPACES, {"metadata": {"name": name}, "status": {"phase": phase}}, {}, expect=old)

    async def refusal(self, attributes: Attributes) -> ApiError:
        with pytest.raises(ApiError) as caught:
            await self.plugin.mutate(attributes)
        return caught.value


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def test_nothing_is_created_in_a_missing_namespace(cluster: Cluster) -> None:
    error = await cluster.refusal(write(POD))
    assert (error.code, error.reason, error.message) == (404, "NotFound", 'namespaces "ns" not found')
    cluster.namespace("ns")
    await cluster.plugin.mutate(write(POD))


async def test_nothing_is_created_in_a_terminating_namespace(cluster: Cluster) -> None:
    cluster.namespace("ns")
    cluster.namespace("ns", "Terminating")
    error = await cluster.refusal(write(POD))
    assert (error.code, error.reason) == (403, "Forbidden")
    assert error.message == (
        'pods "x" is forbidden: unable to create new content in namespace ns because it is being terminated'
    )
    assert error.details == {
        "name": "x",
        "kind": "pods",
        "causes": [
            {
                "reason": "NamespaceTerminating",
                "message": "namespace ns is being terminated",
                "field": "metadata.namespace",
            }
        ],
    }


async def test_objects_may_be_updated_and_deleted_in_a_terminating_namespace(cluster: Cluster) -> None:
    cluster.namespace("ns", "Terminating")
    for operation in ("UPDATE", "DELETE"):
        await cluster.plugin.mutate(write(POD, operation))


async def test_an_object_without_name_is_named_by_what_its_name_will_begin_with(cluster: Cluster) -> None:
    cluster.namespace("ns", "Terminating")
    attributes = write(POD, name="", object={"metadata": {"generateName": "web-"}})
    assert (await cluster.refusal(attributes)).message.startswith('pods "web-" is forbidden')


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_never_go(cluster: Cluster, name: str) -> None:
    error = await cluster.refusal(write(NAMESPACE, "DELETE", name=name))
    assert error.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


async def test_other_kinds_are_created_and_deleted_freely(cluster: Cluster) -> None:
    await cluster.plugin.mutate(write(NAMESPACE, "DELETE", name="mine"))
    await cluster.plugin.mutate(write(NAMESPACE))
    await cluster.plugin.mutate(write(NODE))


# TaintNodesByCondition

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
GPU = {"key": "gpu", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, [NOT_READY]), ({"taints": [GPU]}, [GPU, NOT_READY]), ({"taints": [NOT_READY]}, [NOT_READY])],
)
async def test_a_new_node_is_tainted_as_not_ready(before: dict[str, Any], after: list[dict[str, str]]) -> None:
    attributes = write(NODE, spec=before)
    await TaintNodesByCondition().mutate(attributes)
    assert attributes.object is not None
    assert attributes.object["spec"]["taints"] == after


@pytest.mark.parametrize("attributes", [write(NODE, "UPDATE"), write(POD), write(NODE, subresource="status")])
async def test_other_kinds_are_not_tainted(attributes: Attributes) -> None:
    before = attributes.object
    await TaintNodesByCondition().mutate(attributes)
    assert attributes.object is before


# DefaultTolerationSeconds


def patience(key: str) -> dict[str, Any]:
    return {
        "key": f"node.kubernetes.io/{key}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ([], [patience("not-ready"), patience("unreachable")]),
        ([{"key": "gpu", "operator": "Exists"}], [patience("not-ready"), patience("unreachable")]),
        ([{"operator": "Exists"}], []),
        ([{"operator": "Exists", "effect": "NoSchedule"}], [patience("not-ready"), patience("unreachable")]),
        ([{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}], [patience("unreachable")]),
    ],
)
async def test_a_pod_tolerates_a_lost_node_for_five_minutes_by_default(
    given: list[dict[str, Any]], added: list[dict[str, Any]]
) -> None:
    attributes = write(POD, spec={"tolerations": given})
    await DefaultTolerationSeconds().mutate(attributes)
    assert attributes.object is not None
    assert attributes.object["spec"]["tolerations"] == given + added


# Priority


async def priority_of(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    attributes = write(POD, spec=spec, **more)
    await Priority().mutate(attributes)
    assert attributes.object is not None
    return dict(attributes.object["spec"])


async def test_a_pod_has_priority_zero() -> None:
    assert await priority_of({}) == {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}


async def test_the_system_classes_have_their_priorities() -> None:
    assert (await priority_of({"priorityClassName": "system-node-critical"}))["priority"] == 2_000_001_000


async def test_an_unknown_priority_class_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        await priority_of({"priorityClassName": "gold"})
    assert caught.value.message == 'pods "x" is forbidden: no PriorityClass with name gold was found'


async def test_a_priority_of_ones_own_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        await priority_of({"priority": 7})
    assert caught.value.message == (
        'pods "x" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority admission '
        "controller computed 0 from the given PriorityClass name"
    )


async def test_an_update_keeps_the_priority() -> None:
    old = {"spec": {"priority": 5, "preemptionPolicy": "Never"}}
    assert await priority_of({}, operation="UPDATE", old=old) == {"priority": 5, "preemptionPolicy": "Never"}
