"""Privilege escalation: a user cannot grant rights that they do not have."""

from typing import Any

import pytest

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.authorization import Authorizer
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.rbac.escalation import EscalationGuard
from nodeyard.apiserver.rbac.index import RbacIndex
from nodeyard.apiserver.resources import GroupResource, Resource, Strategy, Version
from nodeyard.apiserver.store import Store
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.worker_thread import WorkerThread
from nodeyard.schema.model import Schema

GROUP = "rbac.authorization.k8s.io"
ALICE = User("alice", ("dev", "system:authenticated"))
READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
READ_NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


def right(verb: str, plural: str, *names: str) -> dict[str, Any]:
    return {"apiGroups": [GROUP], "resources": [plural], "verbs": [verb], "resourceNames": list(names)}


class Cluster:
    def __init__(self) -> None:
        self.store = Store()
        self.guard = EscalationGuard(Authorizer(RbacIndex(self.store)))

    def put(self, kind: str, name: str, **content: Any) -> None:
        resource = GroupResource(GROUP, kind.lower() + "s")
        self.store.commit(resource, {"kind": kind, "metadata": {"name": name}, **content}, {}, expect=None)

    def grant_alice(self, *rules: dict[str, Any]) -> None:
        self.put("ClusterRole", "held", rules=list(rules))
        reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "held"}
        self.put("ClusterRoleBinding", "held", roleRef=reference, subjects=[{"kind": "User", "name": "alice"}])

    async def write(
        self, kind: str, obj: dict[str, Any], old: dict[str, Any] | None = None, user: User = ALICE
    ) -> None:
        plural = kind.lower() + "s"
        resource = Resource(GROUP, kind, plural, kind.lower(), False, {"v1": Version("v1", Schema())}, "v1", Strategy())
        await self.guard.mutate(
            Attributes(
                operation="UPDATE" if old else "CREATE",
                resource=resource,
                version="v1",
                subresource="",
                namespace="",
                name=obj["metadata"]["name"],
                object=obj,
                old=old,
                user=user,
                work=WorkerThread().work(),
            )
        )

    async def refusal(self, kind: str, obj: dict[str, Any], old: dict[str, Any] | None = None) -> ApiError:
        with pytest.raises(ApiError) as caught:
            await self.write(kind, obj, old)
        return caught.value


def role(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "new"}, "rules": list(rules), **more}


def binding(name: str) -> dict[str, Any]:
    return {"metadata": {"name": "new"}, "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def test_a_role_with_rights_one_holds_may_be_written(cluster: Cluster) -> None:
    cluster.grant_alice(READ_PODS)
    await cluster.write("ClusterRole", role({**READ_PODS, "verbs": ["list"]}))


async def test_a_role_with_more_is_refused_by_what_is_missing(cluster: Cluster) -> None:
    cluster.grant_alice(READ_PODS)
    error = await cluster.refusal("ClusterRole", role(READ_PODS, READ_NODES))
    assert (error.code, error.reason) == (403, "Forbidden")
    assert error.message == (
        'clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "alice" (groups=["dev" '
        '"system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}'
    )


async def test_the_right_to_escalate_lifts_it(cluster: Cluster) -> None:
    cluster.grant_alice(right("escalate", "clusterroles"))
    await cluster.write("ClusterRole", role(READ_NODES))


async def test_the_right_to_escalate_one_role_covers_its_updates(cluster: Cluster) -> None:
    cluster.grant_alice(right("escalate", "clusterroles", "new"))
    await cluster.write("ClusterRole", role(READ_NODES), old=role(READ_PODS))
    assert (await cluster.refusal("ClusterRole", role(READ_NODES))).code == 403


async def test_system_masters_may_write_any_role(cluster: Cluster) -> None:
    await cluster.write("ClusterRole", role(EVERYTHING), user=User("root", ("system:masters",)))


async def test_aggregation_takes_all_rights(cluster: Cluster) -> None:
    cluster.grant_alice(READ_PODS)
    gathers = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    error = await cluster.refusal("ClusterRole", role(aggregationRule=gathers))
    assert error.message.endswith("must have cluster-admin privileges to use the aggregationRule")


async def test_an_update_by_garbage_collection_is_allowed(cluster: Cluster) -> None:
    old = role(READ_NODES)
    new = {**old, "metadata": {"name": "new", "ownerReferences": [], "finalizers": ["x"], "managedFields": []}}
    await cluster.write("ClusterRole", new, old=old)


async def test_a_binding_to_a_role_one_holds_may_be_written(cluster: Cluster) -> None:
    cluster.grant_alice(READ_PODS)
    await cluster.write("ClusterRoleBinding", binding("held"))


async def test_a_binding_to_more_is_refused(cluster: Cluster) -> None:
    cluster.grant_alice(READ_PODS)
    cluster.put("ClusterRole", "all", rules=[EVERYTHING])
    error = await cluster.refusal("ClusterRoleBinding", binding("all"))
    assert error.message.startswith('clusterrolebindings.rbac.authorization.k8s.io "new" is forbidden: user "alice"')
    assert error.message.endswith('{APIGroups:["*"], Resources:["*"], Verbs:["*"]}')


async def test_the_right_to_bind_that_role_lifts_it(cluster: Cluster) -> None:
    cluster.put("ClusterRole", "all", rules=[EVERYTHING])
    cluster.grant_alice(right("bind", "clusterroles", "all"))
    await cluster.write("ClusterRoleBinding", binding("all"))


async def test_a_binding_to_a_missing_role_is_not_found(cluster: Cluster) -> None:
    error = await cluster.refusal("ClusterRoleBinding", binding("gone"))
    assert (error.code, error.message) == (404, 'clusterrolebindings.rbac.authorization.k8s.io "gone" not found')


MANY = [f"x{number}" for number in range(2000)]
WIDE = {"apiGroups": MANY, "resources": MANY, "verbs": MANY}


@pytest.mark.timeout(10)
async def test_a_rule_with_billions_of_combinations_that_is_held_as_a_whole_may_be_granted() -> None:
    cluster = Cluster()
    cluster.grant_alice(READ_PODS, WIDE)

    await cluster.write("ClusterRole", role({**WIDE, "verbs": MANY[1:]}))


@pytest.mark.timeout(10)
async def test_a_rule_with_too_many_combinations_to_compare_is_refused() -> None:
    cluster = Cluster()
    cluster.grant_alice(READ_PODS)

    error = await cluster.refusal("ClusterRole", role(WIDE))

    assert error.code == 403
    assert "too many to compare" in error.message
