"""RBAC authorization of requests; `system:masters` may do anything."""

from __future__ import annotations

from typing import NamedTuple

from nodeyard.apiserver.errors import ApiError, aggregate, forbidden
from nodeyard.apiserver.rbac.index import RbacIndex
from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.users import MASTERS
from nodeyard.kube.goformat import quote


class Decision(NamedTuple):
    is_allowed: bool
    reason: str = ""
    """The binding that allows it, or the errors of roles that might have."""


_UNLIMITED = Decision(True)


class Authorizer:
    """Authorizes requests by the roles and bindings of a store."""

    def __init__(self, rbac: RbacIndex) -> None:
        self.rbac = rbac

    def authorize(self, user: User, info: RequestInfo) -> Decision:
        if MASTERS in user.groups:
            return _UNLIMITED
        faults: dict[str, None] = {}
        for grant in self.rbac.grants(user, info.namespace):
            permissions = self.rbac.roles.permissions(grant.role)
            if permissions is None:
                faults[f"{grant.role} not found"] = None
            elif permissions.allow(info):
                return Decision(True, f"RBAC: allowed by {grant.source}")
        return Decision(False, f"RBAC: {aggregate(faults)}" if faults else "")

    def check(self, user: User, info: RequestInfo) -> None:
        """Raise a 403 if the request is not allowed."""
        decision = self.authorize(user, info)
        if not decision.is_allowed:
            raise refusal(user, info, decision.reason)


def refusal(user: User, info: RequestInfo, reason: str = "") -> ApiError:
    text = _escape(_describe(user, info))
    return forbidden(info.group, info.resource, info.name, f"{text}: {reason}" if reason else text)


def _describe(user: User, info: RequestInfo) -> str:
    who = f"User {quote(user.name)} cannot {info.verb}"
    if not info.is_resource:
        return f"{who} path {quote(info.path)}"
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    where = f"in the namespace {quote(info.namespace)}" if info.namespace else "at the cluster scope"
    return f"{who} resource {quote(resource)} in API group {quote(info.group)} {where}"


def _escape(text: str) -> str:
    """Escape HTML: the message contains text of the client and may be shown by a browser."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
