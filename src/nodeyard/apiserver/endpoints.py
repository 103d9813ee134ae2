"""Which endpoints there are, and which methods each takes: asked before anything else is looked at."""

from __future__ import annotations

from nodeyard.apiserver import errors
from nodeyard.apiserver.calls import Call
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.requests import RequestInfo

_POSTED = {("", "pods", "eviction"), ("", "pods", "binding"), ("", "serviceaccounts", "token")}
_CHANGED = ("GET", "PUT", "PATCH")


def check(call: Call) -> None:
    """404 or 405 where there is no such endpoint or it does not take the method."""
    if call.resource.is_custom:
        _check_custom(call)
        return
    methods = _methods(call)
    if methods is None:
        raise errors.unknown_path()
    if call.request.method not in methods:
        raise errors.method_not_allowed()


def missing(registry: Registry, info: RequestInfo) -> ApiError:
    """The answer about a path where nothing is: a Status in groups of the server's own, else a plain page."""
    is_own = not info.group or any(each.group == info.group and not each.is_custom for each in registry)
    return errors.unknown_path() if is_own else errors.no_page()


def _check_custom(call: Call) -> None:
    """Custom resources are routed by hand on the real server, with answers of their own."""
    info, method, depth = call.info, call.request.method, len(call.info.parts)
    is_read = method in ("GET", "HEAD")
    if call.resource.namespaced and not info.namespace and not (is_read and depth == 1):
        raise errors.no_page()
    if (not info.verb and depth < 3) or (info.verb == "watch" and not is_read):
        kind = f"{call.resource.plural}.{call.resource.group}"
        text = f' is not supported on resources of kind "{kind}"'
        raise ApiError(405, "MethodNotAllowed", text, details={"group": call.resource.group, "kind": info.resource})
    if depth == 1 and info.verb in ("update", "patch"):
        raise errors.bad_request("name must be provided")
    if depth == 2 and info.verb == "create":
        raise errors.method_not_allowed()


def _methods(call: Call) -> tuple[str, ...] | None:
    """What may be asked of the endpoint; None where there is no such endpoint."""
    info, depth = call.info, len(call.info.parts)
    if depth > 3 or (call.resource.namespaced and not info.namespace and depth > 1 and info.verb != "watch"):
        return None
    if depth == 3:
        return _subresource(call)
    if info.verb == "watch":
        return ("GET",)
    if depth == 2:
        return (*_CHANGED, "DELETE")
    is_everywhere = call.resource.namespaced and not info.namespace
    return ("GET",) if is_everywhere else ("GET", "POST", "DELETE")


def _subresource(call: Call) -> tuple[str, ...] | None:
    name, resource = call.info.subresource, call.resource
    if (resource.group, resource.plural, name) in _POSTED:
        return ("POST",)
    if (resource.key, name) == (("", "namespaces"), "finalize"):
        return ("PUT",)
    has_it = (name == "status" and call.typed.has_status) or (name == "scale" and call.typed.scale is not None)
    return _CHANGED if has_it else None
