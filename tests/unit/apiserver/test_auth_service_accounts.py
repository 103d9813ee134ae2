"""Tokens of service accounts: created by TokenRequest, valid while the bound object exists."""

from typing import Any

import pytest

from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.service_accounts import ServiceAccountTokens
from nodeyard.apiserver.store import Store, Stored
from nodeyard.apiserver.tokens import TokenSigner
from nodeyard.process.clock import VirtualClock

ACCOUNTS = GroupResource("", "serviceaccounts")


class Cluster:
    def __init__(self) -> None:
        self.store = Store()
        self.clock = VirtualClock()
        self.tokens = ServiceAccountTokens(self.store, self.clock)
        self.account = self.put("serviceaccounts", "robot", "u-1")

    def put(self, plural: str, name: str, uid: str, namespace: str = "ci", **content: Any) -> Stored:
        metadata = {"name": name, "uid": uid} | ({"namespace": namespace} if namespace else {})
        return self.store.commit(GroupResource("", plural), {"metadata": metadata, **content}, {}, expect=None)

    def token(self, **spec: Any) -> str:
        answer = self.tokens.create("ci", "robot", {"spec": spec})
        return str(answer["status"]["token"])


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_token_authenticates_its_service_account(cluster: Cluster) -> None:
    user = cluster.tokens.identify(cluster.token())
    assert user is not None
    assert user.name == "system:serviceaccount:ci:robot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated")
    assert user.uid == "u-1"
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


def test_a_token_request_is_answered_with_its_defaults_filled_in(cluster: Cluster) -> None:
    answer = cluster.tokens.create("ci", "robot", {})
    assert answer["metadata"]["name"] == "robot"
    assert answer["spec"] == {
        "audiences": ["https://kubernetes.default.svc"],
        "expirationSeconds": 3600,
        "boundObjectRef": None,
    }
    assert answer["status"]["expirationTimestamp"] == "2026-01-01T01:00:00Z"


async def test_a_token_ends_when_its_time_is_up(cluster: Cluster) -> None:
    token = cluster.token(expirationSeconds=600)
    await cluster.clock.advance(599)
    assert cluster.tokens.identify(token)
    await cluster.clock.advance(1)
    assert cluster.tokens.identify(token) is None


def test_a_token_ends_with_its_service_account(cluster: Cluster) -> None:
    token = cluster.token()
    cluster.store.remove(ACCOUNTS, cluster.account)
    assert cluster.tokens.identify(token) is None
    cluster.put("serviceaccounts", "robot", "u-2")
    assert cluster.tokens.identify(token) is None, "the account of the same name is another one"


def test_a_bound_token_ends_with_its_pod_and_says_where_that_runs(cluster: Cluster) -> None:
    spec = {"serviceAccountName": "robot", "nodeName": "n1"}
    pod = cluster.put("pods", "p", "p-1", spec=spec)
    cluster.put("nodes", "n1", "n-1", namespace="")
    token = cluster.token(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
    user = cluster.tokens.identify(token)
    assert user is not None
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert user.extra["authentication.kubernetes.io/node-uid"] == ("n-1",)
    cluster.store.remove(GroupResource("", "pods"), pod)
    assert cluster.tokens.identify(token) is None


def test_a_token_for_others_is_not_for_the_api_server(cluster: Cluster) -> None:
    token = cluster.token(audiences=["vault"])
    assert cluster.tokens.identify(token) is None
    assert cluster.tokens.identify(token, ("vault",))


@pytest.mark.parametrize("forged", ["", "a.b.c", "nonsense", "ü.ü.ü"])
def test_an_invalid_token_authenticates_nobody(cluster: Cluster, forged: str) -> None:
    assert cluster.tokens.identify(forged) is None


def test_a_token_of_another_server_authenticates_nobody(cluster: Cluster) -> None:
    other = ServiceAccountTokens(cluster.store, cluster.clock, TokenSigner(b"another key"))
    assert other.identify(cluster.token()) is None


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        ({"metadata": {"name": "other"}}, 422, "must match the service account name if specified"),
        ({"metadata": {"uid": "x"}}, 409, "the UID in the token request (x) does not match"),
        ({"spec": {"expirationSeconds": 5}}, 422, "may not specify a duration less than 10 minutes"),
        ({"spec": {"expirationSeconds": 2**33}}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"spec": {"boundObjectRef": {"kind": "Pod", "name": "gone"}}}, 404, 'pods "gone" not found'),
        ({"spec": {"boundObjectRef": {"kind": "Lease", "name": "l"}}}, 400, "cannot bind token to object of type"),
    ],
)
def test_a_token_request_that_cannot_be_met_is_refused(
    cluster: Cluster, request_: dict[str, Any], code: int, message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        cluster.tokens.create("ci", "robot", request_)
    assert caught.value.code == code
    assert message in caught.value.message


def test_no_token_is_issued_for_a_missing_service_account(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match='serviceaccounts "nobody" not found'):
        cluster.tokens.create("ci", "nobody", {})
