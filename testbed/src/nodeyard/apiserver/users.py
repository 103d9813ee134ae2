"""The users and groups that have a meaning for the server, and the names of service accounts."""

from __future__ import annotations

from typing import NamedTuple

from nodeyard.apiserver.transport import User
from nodeyard.kube.names import label_faults, subdomain_faults

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
SERVICE_ACCOUNTS = "system:serviceaccounts"
NODES = "system:nodes"
NODE_PREFIX = "system:node:"

ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))

_SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"


class ServiceAccountName(NamedTuple):
    namespace: str
    name: str

    @property
    def username(self) -> str:
        return f"{_SERVICE_ACCOUNT_PREFIX}{self.namespace}:{self.name}"

    @property
    def groups(self) -> tuple[str, ...]:
        return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{self.namespace}")


def parse_service_account(username: str) -> ServiceAccountName | None:
    """Return the service account of a user name, or None."""
    if not username.startswith(_SERVICE_ACCOUNT_PREFIX):
        return None
    namespace, colon, name = username.removeprefix(_SERVICE_ACCOUNT_PREFIX).partition(":")
    if not colon or label_faults(namespace) or subdomain_faults(name):
        return None
    return ServiceAccountName(namespace, name)


def parse_node(username: str) -> str | None:
    """Return the node of a user name, or None."""
    name = username.removeprefix(NODE_PREFIX)
    return name if name != username and not subdomain_faults(name) else None


def with_group(user: User, group: str) -> User:
    """Return the user with this group."""
    if group in user.groups:
        return user
    return User(user.name, (*user.groups, group), user.uid, user.extra)
