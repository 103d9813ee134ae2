"""The scale subresource: reads and writes the replicas of an object as a Scale."""

from __future__ import annotations

from nodeyard.apiserver import errors
from nodeyard.apiserver.request_context import RequestContext
from nodeyard.apiserver.resources import SCALE, Scale
from nodeyard.kube import fields
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Json, Object
from nodeyard.kube.selectors import from_object

_INT32_MAX = 2**31 - 1
_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def to_scale(context: RequestContext, obj: Object, paths: Scale) -> Object:
    """Return the Scale of an object. A custom resource without replicas can be scaled, but not read."""
    replicas = _at(obj, paths.spec_path)
    if replicas is None and context.resource.is_custom and context.info.verb == "get":
        raise errors.internal(f'the spec replicas field "{paths.spec_path}" does not exist')
    status: Object = {"replicas": _at(obj, paths.status_path) or 0}
    selector = _selector(_at(obj, paths.selector_path)) if paths.selector_path else ""
    if selector:
        status["selector"] = selector
    given = obj["metadata"]
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {name: given[name] for name in _METADATA if name in given},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def with_replicas(context: RequestContext, obj: Object, scale: Object, paths: Scale) -> Object:
    """Return the object with the replicas of a Scale, and its uid and resourceVersion as preconditions."""
    replicas = scale["spec"].get("replicas", 0)
    if replicas < 0:
        raise _negative(context, replicas, paths)
    given = {**obj["metadata"]}
    for name in ("uid", "resourceVersion"):
        if scale["metadata"].get(name):
            given[name] = scale["metadata"][name]
    changed = _with(obj, paths.spec_path.lstrip(".").split("."), replicas)
    return {**changed, "metadata": given}


def count_faults(obj: Object, paths: Scale) -> list[FieldError]:
    """Validate the scale fields of a custom resource."""
    found = []
    for path in (paths.spec_path, paths.status_path):
        value = _at(obj, path)
        if isinstance(value, int) and value < 0:
            found.append(fields.invalid(path, value, "should be a non-negative integer"))
        elif isinstance(value, int) and value > _INT32_MAX:
            found.append(fields.invalid(path, value, f"should be less than or equal to {_INT32_MAX}"))
    return found


def _negative(context: RequestContext, replicas: int, paths: Scale) -> errors.ApiError:
    resource = context.resource
    if resource.is_custom:
        fault = fields.invalid(paths.spec_path, replicas, "should be a non-negative integer")
        return errors.invalid(resource.group, resource.kind, context.name, [fault])
    fault = fields.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
    return errors.invalid("autoscaling", "Scale", context.name, [fault])


def _at(obj: Object, path: str) -> Json:
    value: Json = obj
    for name in path.lstrip(".").split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _with(obj: Object, path: list[str], value: Json) -> Object:
    if len(path) == 1:
        return {**obj, path[0]: value}
    return {**obj, path[0]: _with(obj.get(path[0]) or {}, path[1:], value)}


def _selector(value: Json) -> str:
    """The selector: a custom resource has it as a string, a built-in kind as an object."""
    return value if isinstance(value, str) else str(from_object(value)) if value else ""
