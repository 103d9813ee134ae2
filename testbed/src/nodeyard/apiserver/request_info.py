"""RequestInfo: verb, group, version, namespace, resource, name and subresource of a request.

Authorization and routing use it. It follows the real server's rules: a namespace is both the scope of a path and a
resource, `/watch/` may precede the resource, and a list whose field selector names one object is authorized for it.
"""

from __future__ import annotations

import msgspec

from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.transport import Request
from nodeyard.kube.selectors import SelectorError, parse_fields


class RequestInfo(msgspec.Struct, frozen=True, gc=False):
    """`name` of a list or watch comes from its field selector; route such a request by its verb."""

    path: str
    verb: str
    is_resource: bool = False
    prefix: str = ""
    """`api` or `apis`."""
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    parts: tuple[str, ...] = ()
    """The path from the resource on: resource, name, subresource and the rest."""
    has_scope: bool = False
    """True if a namespace precedes the resource; false for the path of a Namespace."""
    has_verb: bool = False
    """True if a verb precedes the resource, as in `/watch/nodes`."""


_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_VERBS_IN_PATH = frozenset({"watch", "proxy"})
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


def parse(request: Request) -> RequestInfo:
    """Parse a request; raise ApiError for a bare `/api/v1/watch`."""
    path = request.path
    other = RequestInfo(path, request.method.lower())
    parts = path.strip("/").split("/")
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        return other
    prefix, group = parts[0], ""
    if prefix == "apis":
        if len(parts) < 4:
            return RequestInfo(path, other.verb, prefix=prefix)
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        version, rest = parts[1], parts[2:]

    verb = _VERBS.get(request.method, "")
    has_verb = rest[0] in _VERBS_IN_PATH
    if has_verb:
        if len(rest) < 2:
            raise _meaningless(path)
        verb, rest = rest[0], rest[1:]

    namespace, has_scope = "", False
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        has_scope = len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES
        rest = rest[2:] if has_scope else rest

    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 and verb != "proxy" else ""
    if not name and verb == "get":
        verb = "watch" if asks_for_watch(request) else "list"
        name = _selected_name(request.param("fieldSelector"))
    elif not name and verb == "delete":
        verb = "deletecollection"
    return RequestInfo(
        path,
        verb,
        True,
        prefix,
        group,
        version,
        namespace,
        rest[0],
        subresource,
        name,
        tuple(rest),
        has_scope=has_scope,
        has_verb=has_verb,
    )


def asks_for_watch(request: Request) -> bool:
    """True if a parameter is set: anything but `false` and `0`, also the empty string."""
    return request.param("watch", "false").lower() not in ("false", "0")


def _selected_name(selector: str) -> str:
    """The name that a field selector requires; empty if there is none or it does not parse."""
    if not selector:
        return ""
    try:
        name = parse_fields(selector).exact("metadata.name") or ""
    except SelectorError:
        return ""
    is_path_segment = name not in (".", "..") and "/" not in name and "%" not in name
    return name if is_path_segment else ""


def _meaningless(path: str) -> ApiError:
    why = f"unable to determine kind and namespace from url, {path}"
    error = ApiError(500, "", f'Internal Server Error: "{path}": failed to create RequestInfo: {why}\n')
    error.plain = True
    return error
