"""The binding subresource of pods: sets the node of a pod, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nodeyard.apiserver import errors
from nodeyard.apiserver.controllers.conditions import with_pod_condition
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.kinds.pod.strategy import BINDING
from nodeyard.apiserver.request_context import RequestContext
from nodeyard.apiserver.selection import selectable
from nodeyard.apiserver.store import Stored
from nodeyard.apiserver.unstored_kinds import Posted, pods_resource, set_namespace
from nodeyard.kube import fields
from nodeyard.kube.fields import FieldError, FieldErrorType
from nodeyard.kube.json import Object

if TYPE_CHECKING:
    from nodeyard.apiserver.server import Server

_SUCCESS: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def bind(server: Server, context: RequestContext, name: str, binding: Object, dry_run: bool) -> Object:
    """Handle POST of a pod's `binding`, and of the deprecated `bindings`, where the body has the name."""
    namespace = context.namespace
    binding = set_namespace(binding, namespace)
    attributes = Posted(context, name, binding, dry_run).attributes(server, "binding", BINDING)
    await server.admission.mutate(attributes)
    binding = attributes.object or binding
    if binding["metadata"].get("name", "") != name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    _check_target(binding.get("target") or {})
    if not name:
        raise errors.bad_request("Name parameter required.")
    await server.admission.validate(attributes)

    pods = pods_resource(server)
    stored = server.store.get(pods.key, namespace, name)
    if stored is None:
        raise errors.not_found("", "pods", name)
    _check_preconditions(stored, binding["metadata"])
    bound = _bound(server, stored.object(), binding)
    if not dry_run:
        server.store.commit(pods.key, bound, selectable(pods, bound), expect=stored)
    return dict(_SUCCESS)


def _check_target(target: Object) -> None:
    faults = []
    if target.get("kind", "") not in ("", "Node"):
        supported = 'supported values: "Node", "<empty>"'
        faults.append(FieldError(FieldErrorType.NOT_SUPPORTED, "target.kind", target["kind"], supported))
    if not target.get("name"):
        faults.append(fields.required("target.name"))
    if faults:
        raise ApiError(500, "", errors.aggregate(str(fault) for fault in faults))


def _check_preconditions(stored: Stored, wanted: Object) -> None:
    uid, revision = wanted.get("uid"), wanted.get("resourceVersion")
    if uid and uid != stored.uid:
        raise _storage_conflict(stored, f"UID in precondition: {uid}, UID in object meta: {stored.uid}")
    if revision and revision != str(stored.revision):
        what = f"ResourceVersion in precondition: {revision}, ResourceVersion in object meta: {stored.revision}"
        raise _storage_conflict(stored, what)


def _storage_conflict(stored: Stored, what: str) -> ApiError:
    namespace, name = stored.key
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/pods/{namespace}/{name}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {what}"
    )
    return errors.conflict("", "pods", name, why)


def _bound(server: Server, pod: Object, binding: Object) -> Object:
    """Return the pod with its node and the binding's labels and annotations; raise if it cannot be bound."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    name = metadata["name"]
    if metadata.get("deletionTimestamp"):
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")
    for field in ("annotations", "labels"):
        if given := binding["metadata"].get(field):
            metadata = {**metadata, field: {**(metadata.get(field) or {}), **given}}
    scheduled = {"type": "PodScheduled", "status": "True"}
    conditions = with_pod_condition(status.get("conditions"), scheduled, server.clock.now())
    kept = {key: value for key, value in status.items() if key != "nominatedNodeName"}
    if conditions is not None:
        kept["conditions"] = conditions
    spec = {**spec, "nodeName": binding["target"]["name"]}
    return {**pod, "metadata": metadata, "spec": spec, "status": kept}


def _refused(name: str, why: str) -> ApiError:
    return errors.conflict("", "pods/binding", name, why)
