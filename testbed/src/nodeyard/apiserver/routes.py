"""The endpoints and the methods that each takes; checked before the request is handled."""

from __future__ import annotations

from nodeyard.apiserver import errors
from nodeyard.apiserver.discovery import VIRTUAL
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.request_context import RequestContext
from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.apiserver.transport import Request

_CHANGED = ("GET", "PUT", "PATCH")
_METHODS = {"create": "POST", "get": "GET", "update": "PUT", "patch": "PATCH"}
_VIRTUAL_GROUPS = frozenset(group for group, *_ in VIRTUAL)


def check(context: RequestContext) -> None:
    """Raise a 404 if there is no such endpoint, or a 405 if it does not take the method."""
    if context.resource.is_custom:
        _check_custom(context)
        return
    methods = _methods(context)
    if methods is None:
        raise errors.unknown_path()
    if context.request.method not in methods:
        raise errors.method_not_allowed()


def check_virtual(request: Request, info: RequestInfo, *, namespaced: bool) -> None:
    """Raise the same for a resource that is created and never stored."""
    if len(info.parts) > 1 or info.has_verb or info.has_scope != namespaced:
        raise errors.unknown_path()
    if request.method != "POST":
        raise errors.method_not_allowed()


def missing(registry: Registry, info: RequestInfo) -> ApiError:
    """The 404 of a path: a Status in a built-in group, else a plain page."""
    is_own = info.group in _VIRTUAL_GROUPS or any(each.group == info.group and not each.is_custom for each in registry)
    return errors.unknown_path() if is_own else errors.no_page()


def _check_custom(context: RequestContext) -> None:
    """Custom resources have a handler and answers of their own on the real server."""
    info, depth = context.info, len(context.info.parts)
    if context.resource.namespaced and not info.namespace and info.verb not in ("list", "watch"):
        raise errors.no_page()
    if info.verb not in _custom_verbs(context):
        kind = f"{context.resource.plural}.{context.resource.group}"
        text = f'{info.verb} is not supported on resources of kind "{kind}"'
        raise ApiError(405, "MethodNotAllowed", text, details={"group": context.resource.group, "kind": info.resource})
    if depth == 1 and info.verb in ("update", "patch"):
        raise errors.bad_request("name must be provided")
    if depth == 2 and info.verb == "create":
        raise errors.method_not_allowed()


def _custom_verbs(context: RequestContext) -> tuple[str, ...]:
    if not context.info.subresource:
        return ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
    if _subresource(context) is None:
        raise errors.not_found(context.resource.group, context.resource.plural, context.name)
    return ("get", "update", "patch")


def _methods(context: RequestContext) -> tuple[str, ...] | None:
    """The methods of the endpoint; None if there is no such endpoint."""
    info, depth = context.info, len(context.info.parts)
    if depth > 3 or info.verb == "proxy" or (context.resource.namespaced and not info.namespace and depth > 1):
        return None
    if depth == 3:
        return None if info.has_verb else _subresource(context)
    if info.verb == "watch":
        return ("GET",)
    if depth == 2:
        return (*_CHANGED, "DELETE")
    if context.resource.namespaced and not info.namespace:
        return ("GET",)
    return ("GET", "POST", "DELETE") if context.resource.strategy.allows_delete_collection else ("GET", "POST")


def _subresource(context: RequestContext) -> tuple[str, ...] | None:
    for subresource in context.resource.subresources(context.typed.name):
        if subresource.name == context.info.subresource:
            return tuple(_METHODS[verb] for verb in subresource.verbs)
    return None
