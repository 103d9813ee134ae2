"""Check of a body's kind and apiVersion against those of its endpoint.

The real server looks for the Go type of the kind and apiVersion, taking missing ones from the endpoint, converts it to
the internal type, and only then compares versions. Each step has its own error. Custom resources have no Go type: their
apiVersion is compared at once, their kind is validated like any field.
"""

from __future__ import annotations

from nodeyard.apiserver import errors
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.kinds.table import definition_of
from nodeyard.apiserver.resources import GroupVersionKind
from nodeyard.kube import fields
from nodeyard.kube.json import Object

_EXTENSIONS = "apiextensions.k8s.io"
_SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
_RETIRED = {
    "admissionregistration.k8s.io": ("v1alpha1", "v1beta1"),
    _EXTENSIONS: ("v1beta1",),
    "apps": ("v1beta1", "v1beta2"),
    "batch": ("v1beta1",),
    "coordination.k8s.io": ("v1beta1",),
    "events.k8s.io": ("v1beta1",),
    "extensions": ("v1beta1",),
    "policy": ("v1beta1",),
    "rbac.authorization.k8s.io": ("v1alpha1", "v1beta1"),
}
"""Versions that are no longer served but have types."""
_MOVED = {"extensions": "apps", "events.k8s.io": ""}
"""Groups whose internal types are another group's."""


def check_built_in(body: Object, wanted: GroupVersionKind) -> Object:
    """Return the body with kind and apiVersion of the endpoint; raise a 400 if it has others."""
    kind, api_version = body.get("kind") or wanted.kind, body.get("apiVersion") or wanted.api_version
    if kind == wanted.kind and api_version == wanted.api_version:
        is_complete = body.get("kind") and body.get("apiVersion")
        return body if is_complete else {**body, "kind": kind, "apiVersion": api_version}
    group, _, version = api_version.rpartition("/")
    given = GroupVersionKind(group, version, kind)
    if not _is_known(given, wanted):
        raise _mistaken(given, wanted, unknown_kind(kind, api_version))
    if kind != wanted.kind or _inside(group) != _inside(wanted.group):
        target = f"{_package(wanted.group)}.{wanted.kind}"
        raise _mistaken(given, wanted, f"converting ({version}.{kind}) to ({target}): unknown conversion")
    raise wrong_version(api_version, wanted)


def check_custom(body: Object, wanted: GroupVersionKind) -> None:
    """Raise a 400 or 422 if a custom resource has another kind or apiVersion."""
    kind, api_version = body.get("kind"), body.get("apiVersion", "")
    if api_version != wanted.api_version:
        raise wrong_version(api_version, wanted)
    if kind != wanted.kind:
        metadata = body.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        fault = fields.invalid("kind", kind, f"must be {wanted.kind}")
        raise errors.invalid(wanted.group, str(kind), str(name or ""), [fault])


def unknown_kind(kind: str, api_version: str) -> str:
    return f'no kind "{kind}" is registered for version "{api_version}" {_SCHEME}'


def wrong_version(api_version: str, wanted: GroupVersionKind) -> ApiError:
    return errors.bad_request(
        f"the API version in the data ({api_version}) does not match the expected API version ({wanted.api_version})"
    )


def _mistaken(given: GroupVersionKind, wanted: GroupVersionKind, why: str) -> ApiError:
    return errors.bad_request(f'{given.kind} in version "{given.version}" cannot be handled as a {wanted.kind}: {why}')


def _is_known(given: GroupVersionKind, wanted: GroupVersionKind) -> bool:
    """True if the scheme of the endpoint has this Go type; CRDs have a scheme of their own."""
    if (given.group == _EXTENSIONS) != (wanted.group == _EXTENSIONS):
        return False
    kind = given.kind.removesuffix("List") or given.kind
    if given.version in _RETIRED.get(given.group, ()):
        return definition_of(_MOVED.get(given.group, given.group), "v1", kind) is not None
    return definition_of(*given) is not None or definition_of(given.group, given.version, kind) is not None


def _inside(group: str) -> str:
    return _MOVED.get(group, group)


def _package(group: str) -> str:
    return _inside(group).partition(".")[0] or "core"
