"""Impersonation: the `Impersonate-*` headers.

There are two modes. Constrained impersonation needs two rights: to impersonate that kind of user, and to do this
request while impersonating. Legacy impersonation needs the verb `impersonate` alone. The constrained mode is tried
first; if neither is allowed, its refusal is the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

import msgspec

from nodeyard.apiserver.authorization import Authorizer, refusal
from nodeyard.apiserver.errors import ApiError, bad_request
from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.apiserver.transport import Request, User
from nodeyard.apiserver.users import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    NODES,
    UNAUTHENTICATED,
    parse_node,
    parse_service_account,
    with_group,
)
from nodeyard.kube.fields import invalid
from nodeyard.kube.goformat import quote

_USER, _UID, _GROUP, _EXTRA = "impersonate-user", "impersonate-uid", "impersonate-group", "impersonate-extra-"
_AUTHENTICATION = "authentication.k8s.io"
_NODE_MODE = "arbitrary-node"


def impersonate(request: Request, info: RequestInfo, requestor: User, authorizer: Authorizer) -> User:
    """Return the user the request acts as: the requestor, or the user of the headers if that is allowed."""
    wanted = _wanted(request)
    if wanted is None:
        return requestor
    first: ApiError | None = None
    for mode in _modes(wanted):
        try:
            if mode.name:
                verb = f"impersonate-on:{mode.name}:{info.verb}"
                authorizer.check(requestor, msgspec.structs.replace(info, verb=verb))
            for right in mode.rights(wanted, requestor):
                authorizer.check(requestor, right)
            return mode.complete(wanted)
        except ApiError as error:
            first = first or error
    assert first is not None
    raise first


def _wanted(request: Request) -> User | None:
    """The user of the headers. Repeated headers are joined by line feeds, which no value can contain."""
    headers = request.headers
    name, uid = headers.get(_USER, ""), headers.get(_UID, "")
    groups = tuple(headers[_GROUP].split("\n")) if _GROUP in headers else ()
    extra = {
        unquote(header.removeprefix(_EXTRA)): tuple(values.split("\n"))
        for header, values in headers.items()
        if header.startswith(_EXTRA)
    }
    if name:
        return User(name, groups, uid, extra)
    if uid or groups or extra:
        raise bad_request(f"requested {_go_syntax(User('', groups, uid, extra))} without impersonating a user name")
    return None


@dataclass(frozen=True, slots=True)
class _Mode:
    """A mode of impersonation; the legacy mode has no name."""

    name: str

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"

    def rights(self, wanted: User, requestor: User) -> Iterator[RequestInfo]:
        """The requests to authorize, one for each impersonated attribute."""
        group = _AUTHENTICATION if self.name else ""
        account, node = parse_service_account(wanted.name), parse_node(wanted.name)
        if account:
            yield self._right(group, "serviceaccounts", account.name, namespace=account.namespace)
        elif node and self.name:
            yield self._right(group, "nodes", node)
        else:
            yield self._right(group, "users", wanted.name)
        if wanted.uid:
            yield self._right(_AUTHENTICATION, "uids", wanted.uid)
        self._limit(wanted, requestor)
        for member in wanted.groups:
            yield self._right(group, "groups", member)
        for key, values in wanted.extra.items():
            for value in values:
                yield self._right(_AUTHENTICATION, "userextras", value, subresource=key)

    def complete(self, wanted: User) -> User:
        """The user with the groups that the name implies."""
        groups = wanted.groups
        if account := parse_service_account(wanted.name):
            groups = groups or account.groups
        elif self.name == _NODE_MODE:
            groups = (NODES,)
        user = User(wanted.name, groups, wanted.uid, wanted.extra)
        if user.name == ANONYMOUS.name:
            return with_group(user, UNAUTHENTICATED)
        return user if UNAUTHENTICATED in groups else with_group(user, AUTHENTICATED)

    def _limit(self, wanted: User, requestor: User) -> None:
        """Refuse what constrained impersonation never allows."""
        if not self.name:
            return
        right = self._right(_AUTHENTICATION, "groups", "")
        if "" in wanted.groups:
            raise refusal(requestor, right, "impersonating the empty string group is not allowed")
        if MASTERS in wanted.groups:
            right = msgspec.structs.replace(right, name=MASTERS)
            raise refusal(requestor, right, f"impersonating the {MASTERS} group is not allowed")
        for key in wanted.extra:
            if "/" not in key:
                right = self._right(_AUTHENTICATION, "userextras", "")
                error = invalid("extra.key", key, 'must be a domain-prefixed path (such as "acme.io/foo")')
                raise refusal(requestor, right, f"impersonating an invalid key in extra is not allowed: {error}")

    def _right(
        self, group: str, resource: str, name: str, *, namespace: str = "", subresource: str = ""
    ) -> RequestInfo:
        return RequestInfo(
            "", self.verb, True, "", group, "v1", namespace, resource=resource, subresource=subresource, name=name
        )


def _modes(wanted: User) -> Iterator[_Mode]:
    only_name = not (wanted.uid or wanted.groups or wanted.extra)
    if parse_node(wanted.name):
        if only_name:
            yield _Mode(_NODE_MODE)
    elif parse_service_account(wanted.name):
        if only_name:
            yield _Mode("serviceaccount")
    else:
        yield _Mode("user-info")
    yield _Mode("")


def _go_syntax(user: User) -> str:
    """A user in Go's %#v format, which the answer contains."""
    extra = ", ".join(f"{quote(key)}:{_go_strings(values)}" for key, values in sorted(user.extra.items()))
    extras = f"map[string][]string{{{extra}}}" if extra else "map[string][]string(nil)"
    name, uid, groups = quote(user.name), quote(user.uid), _go_strings(user.groups)
    return f"&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extras}}}"


def _go_strings(values: tuple[str, ...]) -> str:
    return "[]string{" + ", ".join(map(quote, values)) + "}" if values else "[]string(nil)"
