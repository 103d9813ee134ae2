"""Authentication of requests."""

from pathlib import Path

import pytest

from nodeyard.apiserver.authentication import Authenticator
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.service_accounts import ServiceAccountTokens
from nodeyard.apiserver.store import Store
from nodeyard.apiserver.transport import Peer, Request, User
from nodeyard.apiserver.user_file import KnownUser, UserFileError, read_user_file
from nodeyard.process.clock import VirtualClock

ALICE = KnownUser(name="alice", token="alice-token", groups=("dev",), uid="a-1")


def authenticator(*users: KnownUser) -> Authenticator:
    return Authenticator(ServiceAccountTokens(Store(), VirtualClock()), users)


def asking(authorization: str = "", **more: object) -> Request:
    headers = {"authorization": authorization} if authorization else {}
    return Request("GET", "/api/v1/nodes", headers=headers, **more)  # type: ignore[arg-type]


def test_a_known_token_is_its_user_and_authenticated() -> None:
    user = authenticator(ALICE).authenticate(asking("Bearer alice-token"))
    assert (user.name, user.groups, user.uid) == ("alice", ("dev", "system:authenticated"), "a-1")


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer"])
def test_the_scheme_is_read_in_any_case(scheme: str) -> None:
    assert authenticator(ALICE).authenticate(asking(f"{scheme} alice-token")).name == "alice"


def test_a_wrong_token_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        authenticator(ALICE).authenticate(asking("Bearer wrong"))
    assert (caught.value.code, caught.value.reason, caught.value.message) == (401, "Unauthorized", "Unauthorized")


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer  two-blanks", "Basic YTpi"])
def test_without_a_bearer_token_one_is_anonymous(header: str) -> None:
    user = authenticator(ALICE).authenticate(asking(header))
    assert (user.name, user.groups) == ("system:anonymous", ("system:unauthenticated",))


def test_a_client_certificate_names_user_and_groups() -> None:
    user = authenticator().authenticate(asking(peer=Peer("admin", ("system:masters",))))
    assert (user.name, user.groups) == ("admin", ("system:masters", "system:authenticated"))


def test_an_in_process_caller_is_trusted() -> None:
    me = User("system:apiserver", ("system:masters",))
    assert authenticator().authenticate(asking(user=me)) is me


# the users file


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_the_users_file_names_users_with_groups_and_rules(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "users.yaml",
        "users:\n"
        "- {name: alice, token: t1, groups: [dev], rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]}\n"
        "- {name: 'system:serviceaccount:ci:builder', token: t2}\n",
    )
    alice, builder = read_user_file(path)
    assert (alice.user.name, alice.user.groups, alice.rules[0].resources) == ("alice", ("dev",), ("nodes",))
    assert builder.user.groups == ("system:serviceaccounts", "system:serviceaccounts:ci")


def test_the_real_servers_token_file_is_read_too(tmp_path: Path) -> None:
    path = written(tmp_path, "tokens.csv", 't1,alice,u1,"dev,ops"\n\nt2, bob, u2\n')
    alice, bob = read_user_file(path)
    assert (alice.token, alice.name, alice.uid, alice.groups) == ("t1", "alice", "u1", ("dev", "ops"))
    assert (bob.token, bob.name, bob.groups) == ("t2", "bob", ())


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("u.yaml", "users: [{name: a}]", "token"),
        ("u.yaml", "users: [{name: a, token: t, colour: red}]", "colour"),
        ("u.yaml", "users: [{name: '', token: t}]", r"users\[0\]: name and token must not be empty"),
        ("u.yaml", "users: [{name: a, token: t}, {name: b, token: t}]", "'b' has the token of 'a'"),
        ("u.yaml", "users: [", "u.yaml"),
        ("u.csv", "t1,alice\n", "line 1: token, user name and uid are needed, found 2 columns"),
    ],
)
def test_an_invalid_users_file_is_refused_with_the_fault(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    with pytest.raises(UserFileError, match=complaint):
        read_user_file(written(tmp_path, name, text))


def test_a_missing_users_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserFileError, match="nowhere.yaml"):
        read_user_file(tmp_path / "nowhere.yaml")
