"""Access reviews: SubjectAccessReview and others, SelfSubjectReview, TokenReview. They are answered, never stored."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from nodeyard.apiserver.authentication import Authenticator
from nodeyard.apiserver.authorization import Authorizer
from nodeyard.apiserver.errors import aggregate, bad_request, invalid
from nodeyard.apiserver.rbac.rules import Rule
from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.apiserver.tokens import ISSUER
from nodeyard.apiserver.transport import User
from nodeyard.kube import fields
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Json, Object
from nodeyard.kube.selectors import SelectorError, parse_fields
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.process.clock import Clock

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"


class Reviews:
    """Answers reviews of every kind with the body of a 201."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer, clock: Clock) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._clock = clock
        self._answers: dict[str, Callable[[Object, User, str], Object]] = {
            "SelfSubjectAccessReview": self._self_subject_access,
            "SubjectAccessReview": self._subject_access,
            "LocalSubjectAccessReview": self._local_subject_access,
            "SelfSubjectRulesReview": self._rules,
            "SelfSubjectReview": self._self,
            "TokenReview": self._token,
        }

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self._answers)

    def review(self, kind: str, body: Object, user: User, namespace: str = "") -> Object:
        """`namespace` is that of the URL, which LocalSubjectAccessReview has."""
        return self._answers[kind](body, user, namespace)

    # access

    def _self_subject_access(self, body: Object, user: User, namespace: str) -> Object:
        errors = [*_spec_errors(body), *_metadata_errors(body, "must be empty")]
        return self._access("SelfSubjectAccessReview", body, user, errors)

    def _subject_access(self, body: Object, user: User, namespace: str) -> Object:
        errors = [*_spec_errors(body), *_user_errors(body), *_metadata_errors(body, "must be empty")]
        return self._access("SubjectAccessReview", body, _subject(body), errors)

    def _local_subject_access(self, body: Object, user: User, namespace: str) -> Object:
        body = {**body, "metadata": {"namespace": namespace, **(body.get("metadata") or {})}}
        errors = [
            *_spec_errors(body),
            *_user_errors(body),
            *_metadata_errors(body, "must be empty except for namespace"),
            *_scope_errors(body),
        ]
        return self._access("LocalSubjectAccessReview", body, _subject(body), errors)

    def _access(self, kind: str, body: Object, subject: User, errors: list[FieldError]) -> Object:
        if errors:
            raise invalid(AUTHORIZATION, "", "", errors)
        decision = self._authorizer.authorize(subject, _asked(body["spec"]))
        status: Object = {"allowed": decision.is_allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return _answer(AUTHORIZATION, kind, body, status)

    def _rules(self, body: Object, user: User, namespace: str) -> Object:
        namespace = (body.get("spec") or {}).get("namespace", "")
        if not namespace:
            raise bad_request("no namespace on request")
        rules, faults = self._authorizer.rbac.rules_for(user, namespace)
        status: Object = {
            "resourceRules": [
                _shown(rule, "apiGroups", "resources", "resourceNames") for rule in rules if rule.resources
            ],
            "nonResourceRules": [_shown(rule, "nonResourceURLs") for rule in rules if rule.non_resource_urls],
            "incomplete": bool(faults),
        }
        if faults:
            status["evaluationError"] = aggregate(faults)
        return _answer(AUTHORIZATION, "SelfSubjectRulesReview", {"spec": {}}, status)

    # identity

    def _self(self, body: Object, user: User, namespace: str) -> Object:
        return {
            "kind": "SelfSubjectReview",
            "apiVersion": f"{AUTHENTICATION}/v1",
            "metadata": {"creationTimestamp": format_rfc3339(self._clock.now())},
            "status": {"userInfo": user_info(user)},
        }

    def _token(self, body: Object, user: User, namespace: str) -> Object:
        spec = body.get("spec") or {}
        token = spec.get("token")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        audiences = tuple(spec.get("audiences") or (ISSUER,))
        subject = self._authenticator.identify(token, audiences)
        if subject is None:
            status: Object = {"user": {}, "error": self._authenticator.fault(token, audiences)}
        else:
            meant = self._authenticator.audiences(token)
            shared = [audience for audience in audiences if audience in meant]
            status = {"authenticated": True, "user": user_info(subject), "audiences": shared}
        return _answer(AUTHENTICATION, "TokenReview", body, status)


def user_info(user: User) -> Object:
    """`authentication.k8s.io/v1` UserInfo."""
    info: Object = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _answer(group: str, kind: str, body: Object, status: Object) -> Object:
    metadata = body.get("metadata") or {}
    return {"kind": kind, "apiVersion": f"{group}/v1", "metadata": metadata, "spec": body["spec"], "status": status}


def _subject(body: Object) -> User:
    spec = body.get("spec") or {}
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)


def _asked(spec: Object) -> RequestInfo:
    other = spec.get("nonResourceAttributes")
    if other is not None:
        return RequestInfo(other.get("path", ""), other.get("verb", ""))
    attributes = spec["resourceAttributes"]
    verb, name = attributes.get("verb", ""), attributes.get("name", "")
    return RequestInfo(
        "",
        verb,
        True,
        group=attributes.get("group", ""),
        version=attributes.get("version", ""),
        namespace=attributes.get("namespace", ""),
        resource=attributes.get("resource", ""),
        subresource=attributes.get("subresource", ""),
        name=name or _selected_name(verb, attributes.get("fieldSelector")),
    )


def _selected_name(verb: str, selector: Object | None) -> str:
    """A list or watch of one name is authorized for that name, as in a request."""
    if verb not in ("list", "watch") or not selector:
        return ""
    try:
        return parse_fields(selector.get("rawSelector", "")).exact("metadata.name") or ""
    except SelectorError:
        return ""


def _shown(rule: Rule, *keys: str) -> Object:
    written: Object = msgspec.to_builtins(rule)
    return {key: list(written[key]) for key in ("verbs", *keys) if key in written}


# validation


def _spec_errors(body: Object) -> list[FieldError]:
    spec = body.get("spec") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        return [fields.invalid("spec.nonResourceAttributes", _internal(other), detail)]
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [fields.invalid("spec.resourceAttributes", None, detail)]
    return []


def _user_errors(body: Object) -> list[FieldError]:
    spec = body.get("spec") or {}
    if spec.get("user") or spec.get("groups"):
        return []
    return [fields.invalid("spec.user", "", "at least one of user or group must be specified")]


def _metadata_errors(body: Object, detail: str) -> list[FieldError]:
    metadata = body.get("metadata") or {}
    allowed = {"managedFields", "creationTimestamp"} | ({"namespace"} if "namespace" in detail else set())
    return [] if metadata.keys() <= allowed else [fields.invalid("metadata", metadata, detail)]


def _scope_errors(body: Object) -> list[FieldError]:
    spec = body.get("spec") or {}
    errors: list[FieldError] = []
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and resource.get("namespace", "") != body["metadata"]["namespace"]:
        path = "spec.resourceAttributes.namespace"
        errors.append(fields.invalid(path, resource.get("namespace", ""), "must match metadata.namespace"))
    if other is not None:
        errors.append(
            fields.invalid("spec.nonResourceAttributes", _internal(other), "disallowed on this kind of request")
        )
    return errors


def _internal(other: Object) -> Json:
    """The attributes as kube-apiserver's internal type prints them."""
    return {"Path": other.get("path", ""), "Verb": other.get("verb", "")}
