"""The writes for which a webhook is called."""

import asyncio
from typing import Any

import pytest

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.conditions import ConditionError, Conditions
from nodeyard.apiserver.admission.namespaces import Namespaces
from nodeyard.apiserver.admission.rules import is_exempt
from nodeyard.apiserver.admission.webhooks.client import WebhookClient
from nodeyard.apiserver.admission.webhooks.configurations import VALIDATING, Configurations
from nodeyard.apiserver.admission.webhooks.dispatcher import Dispatcher
from nodeyard.apiserver.admission.webhooks.endpoints import Services
from nodeyard.apiserver.admission.webhooks.reviews import question
from nodeyard.apiserver.cel.cost import Budget
from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.resources import GroupResource, GroupVersionKind, Resource, Strategy, Version
from nodeyard.apiserver.store import Store
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.worker_thread import WorkerThread
from nodeyard.schema.model import Schema

NAMESPACES = GroupResource("", "namespaces")


def resource(
    plural: str, group: str = "", *, versions: str = "v1", namespaced: bool = True, kind: str = ""
) -> Resource:
    known = {name: Version(name, Schema()) for name in versions.split()}
    singular = plural.removesuffix("s")
    return Resource(
        group, kind or singular.title(), plural, singular, namespaced, known, versions.split()[0], Strategy()
    )


PODS = resource("pods")
NODES = resource("nodes", namespaced=False)
DEPLOYMENTS = resource("deployments", "apps")
WIDGETS = resource("widgets", "example.com", versions="v2 v1 v1beta1")


def write(what: Resource = PODS, operation: str = "CREATE", **more: Any) -> Attributes:
    labels = more.pop("labels", {})
    name = more.pop("name", "x")
    namespace = more.pop("namespace", "ns" if what.namespaced else "")
    obj = {"metadata": {"name": name, "namespace": namespace, "labels": labels}}
    fields: dict[str, Any] = {
        "operation": operation,
        "resource": what,
        "version": what.storage_version,
        "subresource": "",
        "namespace": namespace,
        "name": name,
        "object": obj,
        "old": None,
        "user": User("alice"),
        "work": WorkerThread().work(),
    }
    return Attributes(**{**fields, **more})


class Fixed:
    """A stand-in for a compiled expression: true, false, or failing."""

    def __init__(self, source: str) -> None:
        self.source = source

    def evaluate(self, variables: Any, budget: Budget | None = None) -> Any:
        if self.source.startswith("fail"):
            raise EvaluationError(f"no such key: {self.source}")
        return self.source == "true"


class Cluster:
    def __init__(self) -> None:
        self.store = Store()
        self.configurations = Configurations(self.store, VALIDATING, Fixed)
        client = WebhookClient(Services(self.store))
        self.dispatcher = Dispatcher(Namespaces(self.store), client, lambda attributes, version: {})
        self.put(NAMESPACES, {"metadata": {"name": "ns", "labels": {"team": "a"}}})

    def put(self, key: GroupResource, obj: dict[str, Any]) -> None:
        old = self.store.get(key, "", obj["metadata"]["name"])
        self.store.commit(key, obj, {}, expect=old)

    def hook(self, rule: dict[str, Any] | None = None, configuration: str = "c", **more: Any) -> None:
        everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
        entry = {"name": f"{configuration}.example.com", "rules": [rule or everything], **more}
        self.put(VALIDATING, {"metadata": {"name": configuration}, "webhooks": [entry]})

    def called(self, attributes: Attributes) -> list[str]:
        async def called() -> list[str]:
            candidates = self.configurations.candidates(attributes)
            return [each.webhook.name for each in candidates if await self.dispatcher.matches(each, attributes)]

        return asyncio.run(called())

    def is_called(self, attributes: Attributes) -> bool:
        return bool(self.called(attributes))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def rule(resources: str, *, groups: str = "*", versions: str = "*", operations: str = "*", scope: str = "*") -> Any:
    return {
        "apiGroups": groups.split(","),
        "apiVersions": versions.split(","),
        "operations": operations.split(","),
        "resources": resources.split(","),
        "scope": scope,
    }


@pytest.mark.parametrize(
    ("given", "attributes", "expected"),
    [
        (rule("pods"), write(), True),
        (rule("pods"), write(subresource="status"), False),
        (rule("pods/*"), write(subresource="status"), True),
        (rule("pods/*"), write(), True),
        (rule("pods/status"), write(), False),
        (rule("*"), write(NODES), True),
        (rule("*"), write(subresource="eviction"), False),
        (rule("*/*"), write(subresource="eviction"), True),
        (rule("*/scale"), write(DEPLOYMENTS, subresource="scale"), True),
        (rule("*/scale"), write(DEPLOYMENTS, subresource="status"), False),
        (rule("deployments"), write(), False),
        (rule("*", groups="apps"), write(DEPLOYMENTS), True),
        (rule("*", groups="apps"), write(), False),
        (rule("*", groups=""), write(), True),
        (rule("*", operations="CREATE,UPDATE"), write(operation="UPDATE"), True),
        (rule("*", operations="CREATE,UPDATE"), write(operation="DELETE"), False),
        (rule("*", scope="Namespaced"), write(), True),
        (rule("*", scope="Namespaced"), write(NODES), False),
        (rule("*", scope="Cluster"), write(NODES), True),
        (rule("*", scope="Cluster"), write(), False),
        (rule("*", scope="Cluster"), write(resource("namespaces", namespaced=False)), True),
        (rule("*", versions="v1"), write(), True),
        (rule("*", versions="v1beta1"), write(), False),
    ],
)
def test_rules_choose_by_operation_group_version_resource_and_scope(
    cluster: Cluster, given: dict[str, Any], attributes: Attributes, expected: bool
) -> None:
    cluster.hook(given)
    assert cluster.is_called(attributes) is expected


def test_webhooks_are_called_in_the_order_of_their_configurations_names(cluster: Cluster) -> None:
    for name in ("b", "c", "a"):
        cluster.hook(configuration=name)
    assert cluster.called(write()) == ["a.example.com", "b.example.com", "c.example.com"]


def test_configurations_take_effect_and_end_at_once(cluster: Cluster) -> None:
    assert not cluster.is_called(write())
    cluster.hook(rule("pods"))
    assert cluster.is_called(write())
    cluster.hook(rule("nodes"))
    assert not cluster.is_called(write())
    cluster.hook(rule("pods"))
    stored = cluster.store.get(VALIDATING, "", "c")
    assert stored is not None
    cluster.store.remove(VALIDATING, stored)
    assert not cluster.is_called(write())


# versions


def test_an_equivalent_version_is_matched_and_the_object_shown_in_it(cluster: Cluster) -> None:
    cluster.hook(rule("widgets", versions="v1"))
    attributes = write(WIDGETS, version="v2", object={"apiVersion": "example.com/v2", "metadata": {"name": "x"}})
    [candidate] = cluster.configurations.candidates(attributes)
    assert candidate.version == "v1"
    request = question(attributes, candidate.version, "uid", "v1")["request"]
    assert request["object"]["apiVersion"] == "example.com/v1"
    assert (request["kind"]["version"], request["resource"]["version"]) == ("v1", "v1")
    assert (request["requestKind"]["version"], request["requestResource"]["version"]) == ("v2", "v2")


def test_the_exact_version_comes_before_an_equivalent_one(cluster: Cluster) -> None:
    cluster.hook(rule("widgets", versions="v1,v2"))
    [candidate] = cluster.configurations.candidates(write(WIDGETS, version="v2"))
    assert candidate.version == "v2"


def test_match_policy_exact_wants_the_version_itself(cluster: Cluster) -> None:
    cluster.hook(rule("widgets", versions="v1"), matchPolicy="Exact")
    assert not cluster.is_called(write(WIDGETS, version="v2"))
    assert cluster.is_called(write(WIDGETS, version="v1"))


def test_a_subresource_of_another_kind_is_shown_as_what_it_is(cluster: Cluster) -> None:
    eviction = GroupVersionKind("policy", "v1", "Eviction")
    attributes = write(subresource="eviction", kind=eviction)
    request = question(attributes, "v1", "uid", "v1")["request"]
    assert request["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert request["resource"]["resource"] == "pods"
    assert (request["subResource"], request["requestSubResource"]) == ("eviction", "eviction")


# selectors

TEAM_A = {"matchLabels": {"team": "a"}}
TEAM_B = {"matchLabels": {"team": "b"}}


def test_the_namespace_must_have_the_labels(cluster: Cluster) -> None:
    cluster.hook(configuration="a", namespaceSelector=TEAM_A)
    cluster.hook(configuration="b", namespaceSelector=TEAM_B)
    assert cluster.called(write()) == ["a.example.com"]
    cluster.put(NAMESPACES, {"metadata": {"name": "ns", "labels": {"team": "b"}}})
    assert cluster.called(write()) == ["b.example.com"]


def test_objects_outside_namespaces_are_never_exempt_by_namespace(cluster: Cluster) -> None:
    cluster.hook(namespaceSelector=TEAM_B)
    assert cluster.is_called(write(NODES))


def test_a_namespace_is_selected_by_its_own_labels(cluster: Cluster) -> None:
    cluster.hook(namespaceSelector=TEAM_B)
    kind = resource("namespaces", namespaced=False)
    assert cluster.is_called(write(kind, name="new", labels={"team": "b"}))
    assert not cluster.is_called(write(kind, name="new", labels={"team": "a"}))
    assert not cluster.is_called(write(kind, "DELETE", name="ns", object=None))


def test_a_missing_namespace_cannot_be_selected(cluster: Cluster) -> None:
    cluster.hook(namespaceSelector=TEAM_A)
    with pytest.raises(ApiError, match='namespaces "gone" not found'):
        cluster.is_called(write(namespace="gone"))


def test_the_new_object_or_the_old_must_have_the_labels(cluster: Cluster) -> None:
    cluster.hook(objectSelector=TEAM_A)
    old = {"metadata": {"name": "x", "labels": {"team": "a"}}}
    assert cluster.is_called(write(labels={"team": "a"}))
    assert not cluster.is_called(write())
    assert cluster.is_called(write(operation="UPDATE", old=old))
    assert cluster.is_called(write(operation="DELETE", object=None, old=old))


def test_an_invalid_selector_fails_the_writes_it_applies_to(cluster: Cluster) -> None:
    cluster.hook(rule("pods"), objectSelector={"matchExpressions": [{"key": "a", "operator": "Sometimes"}]})
    with pytest.raises(ApiError, match='"Sometimes" is not a valid label selector operator') as caught:
        cluster.is_called(write())
    assert caught.value.code == 500
    assert not cluster.is_called(write(NODES))


# conditions


def conditions(*sources: str) -> list[dict[str, str]]:
    return [{"name": f"c{index}", "expression": source} for index, source in enumerate(sources)]


def test_all_conditions_must_hold(cluster: Cluster) -> None:
    cluster.hook(matchConditions=conditions("true", "true"))
    assert cluster.is_called(write())
    cluster.hook(matchConditions=conditions("true", "false"))
    assert not cluster.is_called(write())


def test_a_condition_that_fails_refuses_the_write(cluster: Cluster) -> None:
    cluster.hook(matchConditions=conditions("fail1", "fail2"))
    with pytest.raises(ApiError) as caught:
        cluster.is_called(write())
    assert caught.value.code == 403
    assert caught.value.message == (
        "pods \"x\" is forbidden: [expression 'fail1' resulted in error: no such key: fail1, "
        "expression 'fail2' resulted in error: no such key: fail2]"
    )


def test_a_condition_that_fails_is_passed_over_where_failure_is_ignored(cluster: Cluster) -> None:
    cluster.hook(matchConditions=conditions("fail"), failurePolicy="Ignore")
    assert not cluster.is_called(write())


def test_a_false_match_condition_decides_before_any_error(cluster: Cluster) -> None:
    cluster.hook(matchConditions=conditions("fail", "false"))
    assert not cluster.is_called(write())


def test_one_failure_is_reported_without_brackets() -> None:
    with pytest.raises(ConditionError) as caught:
        Conditions(conditions("fail", "true"), Fixed).hold({}, None)
    assert str(caught.value) == "expression 'fail' resulted in error: no such key: fail"


# exemptions


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding"])
def test_webhooks_are_not_called_for_admission_configurations(kind: str) -> None:
    configuration = resource(f"{kind.lower()}s", "admissionregistration.k8s.io", kind=kind, namespaced=False)
    assert is_exempt(write(configuration))
    assert not is_exempt(write(resource(f"{kind.lower()}s", "example.com", kind=kind)))
