"""The authorizer library of CEL: `authorizer` in expressions.

    authorizer.group('apps').resource('deployments').namespace('x').check('create').allowed()

Checks are values that are refined step by step; only `check` authorizes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.namespaces import namespace_of
from nodeyard.apiserver.authorization import Authorizer, Decision
from nodeyard.apiserver.cel.declarations import Implementation, Overload, member
from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.apiserver.cel.types import parse_type
from nodeyard.apiserver.cel.values import Opaque
from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.users import AUTHENTICATED, ServiceAccountName
from nodeyard.kube.names import label_faults, subdomain_faults

_TYPES = "kubernetes.authorization."
AUTHORIZER = parse_type(f"{_TYPES}Authorizer")
RESOURCE_CHECK = parse_type(f"{_TYPES}ResourceCheck")


@dataclass(frozen=True, slots=True)
class AuthorizerValue(Opaque):
    """The authorizer, and the user it authorizes."""

    authorizer: Authorizer
    user: User
    type_name: ClassVar[str] = f"{_TYPES}Authorizer"


@dataclass(frozen=True, slots=True)
class PathCheck(Opaque):
    asking: AuthorizerValue
    path: str
    type_name: ClassVar[str] = f"{_TYPES}PathCheck"


@dataclass(frozen=True, slots=True)
class GroupCheck(Opaque):
    asking: AuthorizerValue
    group: str
    type_name: ClassVar[str] = f"{_TYPES}GroupCheck"


@dataclass(frozen=True, slots=True)
class ResourceCheck(Opaque):
    asking: AuthorizerValue
    info: RequestInfo
    type_name: ClassVar[str] = f"{_TYPES}ResourceCheck"


@dataclass(frozen=True, slots=True)
class DecisionValue(Opaque):
    decision: Decision
    type_name: ClassVar[str] = f"{_TYPES}Decision"


def request_resource(asking: AuthorizerValue, attributes: Attributes) -> ResourceCheck:
    """Return `authorizer.requestResource`: a check of the resource of the request."""
    resource = attributes.resource
    info = RequestInfo(
        "",
        "",
        True,
        group=resource.group,
        version="*",
        namespace=namespace_of(attributes),
        resource=resource.plural,
        subresource=attributes.subresource,
        name=attributes.name,
    )
    return ResourceCheck(asking, info)


def _path(asking: AuthorizerValue, path: str) -> PathCheck:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return PathCheck(asking, path)


def _service_account(asking: AuthorizerValue, namespace: str, name: str) -> AuthorizerValue:
    if subdomain_faults(name):
        raise EvaluationError("Invalid service account name")
    if label_faults(namespace):
        raise EvaluationError("Invalid service account namespace")
    account = ServiceAccountName(namespace, name)
    return AuthorizerValue(asking.authorizer, User(account.username, (*account.groups, AUTHENTICATED)))


def _resource(check: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(check.asking, RequestInfo("", "", True, group=check.group, version="*", resource=resource))


def _refining(field: str) -> Implementation:
    return lambda check, value: ResourceCheck(check.asking, msgspec.structs.replace(check.info, **{field: value}))


def _unrefined(check: ResourceCheck, selector: str) -> ResourceCheck:
    """Ignore the selector, as RBAC does."""
    return check


def _check_path(check: PathCheck, verb: str) -> DecisionValue:
    asking = check.asking
    return DecisionValue(asking.authorizer.authorize(asking.user, RequestInfo(check.path, verb)))


def _check_resource(check: ResourceCheck, verb: str) -> DecisionValue:
    asking, info = check.asking, msgspec.structs.replace(check.info, verb=verb)
    return DecisionValue(asking.authorizer.authorize(asking.user, info))


def _declare(name: str, signature: str, implementation: Implementation) -> Overload:
    """Declare an overload; capitalised words in its signature are the types of this library."""
    return member(name, re.sub(r"[A-Z]\w+", lambda word: _TYPES + word[0], signature), implementation)


OVERLOADS = (
    _declare("path", "Authorizer, string -> PathCheck", _path),
    _declare("group", "Authorizer, string -> GroupCheck", GroupCheck),
    _declare("serviceAccount", "Authorizer, string, string -> Authorizer", _service_account),
    _declare("resource", "GroupCheck, string -> ResourceCheck", _resource),
    _declare("subresource", "ResourceCheck, string -> ResourceCheck", _refining("subresource")),
    _declare("namespace", "ResourceCheck, string -> ResourceCheck", _refining("namespace")),
    _declare("name", "ResourceCheck, string -> ResourceCheck", _refining("name")),
    _declare("fieldSelector", "ResourceCheck, string -> ResourceCheck", _unrefined),
    _declare("labelSelector", "ResourceCheck, string -> ResourceCheck", _unrefined),
    _declare("check", "PathCheck, string -> Decision", _check_path),
    _declare("check", "ResourceCheck, string -> Decision", _check_resource),
    _declare("allowed", "Decision -> bool", lambda value: value.decision.is_allowed),
    _declare("reason", "Decision -> string", lambda value: value.decision.reason),
    _declare("errored", "Decision -> bool", lambda value: False),
    _declare("error", "Decision -> string", lambda value: ""),
)
