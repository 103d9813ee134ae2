"""The eviction subresource: deletes a pod if its PodDisruptionBudget allows.

A pod that is pending, finished or terminating is deleted without a check. Otherwise the eviction is first counted in
the budget's status by a conditional write; only if that succeeds is the pod deleted.

As on the real server, admission sees the eviction and not the deletion that follows from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nodeyard.apiserver import errors
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.controllers.conditions import find, is_true, with_pod_condition
from nodeyard.apiserver.controllers.disruption_status import ALLOWED, sync_failure, with_allowed
from nodeyard.apiserver.deletion import Deleter
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.kinds.pod.strategy import EVICTION
from nodeyard.apiserver.negotiation import negotiate
from nodeyard.apiserver.options import delete_options
from nodeyard.apiserver.request_context import RequestContext
from nodeyard.apiserver.request_info import parse
from nodeyard.apiserver.resources import GroupResource, Resource
from nodeyard.apiserver.store import Stored
from nodeyard.apiserver.transport import User, request
from nodeyard.apiserver.unstored_kinds import Posted, pods_resource, set_namespace
from nodeyard.apiserver.users import MASTERS
from nodeyard.kube import fields
from nodeyard.kube.json import Object
from nodeyard.kube.selectors import SelectorError, from_object
from nodeyard.kube.timestamps import format_rfc3339

if TYPE_CHECKING:
    from nodeyard.apiserver.server import Server

_BUDGETS: Final = GroupResource("policy", "poddisruptionbudgets")
RETIRED_EVICTION: Final = "policy/v1beta1"
_SERVER: Final = User("system:apiserver", (MASTERS,))
_SUCCESS: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

_ATTEMPTS: Final = 20
_DISRUPTED_MAX: Final = 2000
_VIOLATION: Final = "Cannot evict pod as it would violate the pod's disruption budget."


async def evict(server: Server, context: RequestContext, eviction: Object, dry_run: bool) -> Object:
    """Handle POST of a pod's `eviction`; return a Status."""
    namespace, name = context.namespace, context.name
    eviction = set_namespace(eviction, namespace)
    attributes = Posted(context, name, eviction, dry_run).attributes(server, "eviction", EVICTION)
    await server.admission.mutate(attributes)
    options = _options(attributes, name, dry_run)
    await server.admission.validate(attributes)

    stored = _pod(server, namespace, name)
    pod = stored.object()
    budget = None if _is_idle(pod) else _budget_of(server, stored)
    if budget is None:
        await _delete(server, stored, options)
    elif _is_unguarded(pod, budget):
        await _delete_unguarded(server, stored, options, budget["metadata"]["name"])
    else:
        await _charge(server, stored, budget["metadata"]["name"], is_dry=bool(options.get("dryRun")))
        # The write of the budget's status has yielded, so the pod may have changed.
        await _delete(server, _pod(server, namespace, name), options)
    return dict(_SUCCESS)


# options


def _options(attributes: Attributes, name: str, dry_run: bool) -> Object:
    """Return the DeleteOptions of the eviction, with the dry run of the request."""
    eviction = attributes.object or {}
    if (eviction.get("metadata") or {}).get("name") != name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    options: Object = eviction.get("deleteOptions") or {}
    ignores_errors = "ignoreStoreReadErrorWithClusterBreakingPotential"
    if options.get(ignores_errors):
        fault = fields.invalid(
            f"deleteOptions.{ignores_errors}", True, "can not be set for pod eviction, try after removing the option"
        )
        raise errors.invalid(EVICTION.group, EVICTION.kind, name, [fault])
    if dry_run and not options.get("dryRun"):
        options = {**options, "dryRun": ["All"]}
    attributes.dry_run = bool(options.get("dryRun"))
    return options


def _pod(server: Server, namespace: str, name: str) -> Stored:
    stored = server.store.get(pods_resource(server).key, namespace, name)
    if stored is None:
        raise errors.not_found("", "pods", name)
    return stored


# budgets


def _is_idle(pod: Object) -> bool:
    """True if the pod does no work: pending, finished or terminating."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Pending", "Succeeded", "Failed") or bool(pod["metadata"].get("deletionTimestamp"))


def _budget_of(server: Server, pod: Stored) -> Object | None:
    found = []
    for stored in server.store.list(_BUDGETS, pod.key.namespace):
        budget = stored.object()
        if _covers(budget, pod):
            found.append(budget)
    if len(found) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiError(500, "", text)
    return found[0] if found else None


def _covers(budget: Object, pod: Stored) -> bool:
    try:
        return from_object(budget["spec"].get("selector")).matches(pod.labels)
    except SelectorError:
        return False


def _is_unguarded(pod: Object, budget: Object) -> bool:
    """True if unhealthyPodEvictionPolicy lets the pod be evicted without counting it."""
    if is_true((pod.get("status") or {}).get("conditions"), "Ready"):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    return bool(0 < desired <= current)


async def _charge(server: Server, pod: Stored, name: str, *, is_dry: bool) -> None:
    """Count the eviction in the budget's status, or raise a 429."""
    where = f"/apis/policy/v1/namespaces/{pod.key.namespace}/poddisruptionbudgets/{name}/status"
    for _ in range(_ATTEMPTS):
        stored = server.store.get(_BUDGETS, pod.key.namespace, name)
        if stored is None:
            raise errors.not_found("policy", "poddisruptionbudgets", name)
        budget = stored.object()
        charged = _charged(server, budget, pod.key.name)
        if is_dry:
            return
        try:
            await server.call("PUT", f"{where}?fieldManager=kube-apiserver", charged, user=_SERVER)
        except ApiError as error:
            if error.code != 409:
                raise
        else:
            return
    raise errors.timeout(f'couldn\'t update PodDisruptionBudget "{name}" due to conflicts')


def _charged(server: Server, budget: Object, pod: str) -> Object:
    """The budget with one disruption less; raises if none is allowed."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _changed_meanwhile(name)
    allowed, disrupted = status.get("disruptionsAllowed", 0), status.get("disruptedPods") or {}
    if allowed < 0:
        raise errors.forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative")
    if len(disrupted) > _DISRUPTED_MAX:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise errors.forbidden("policy", "poddisruptionbudget", name, why)
    if allowed == 0:
        raise _refused(_why_not(name, status))
    now = server.clock.now()
    changed = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod: format_rfc3339(now)}}
    if allowed == 1:
        changed["conditions"] = with_allowed(status.get("conditions"), 0, status.get("observedGeneration", 0), now)
    return {**budget, "status": changed}


def _why_not(name: str, status: Object) -> str:
    conditions = status.get("conditions")
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if failure := sync_failure(conditions):
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {failure}"
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    condition = find(conditions, ALLOWED) or {}
    if condition.get("status") == "False" and condition.get("message"):
        said = f"({condition.get('reason', '')}): {condition['message']}"
        return f"The disruption budget {name} does not allow evicting pods currently {said}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _refused(message: str, *, retry_after: int = 0) -> ApiError:
    causes: list[Object] = [{"reason": "DisruptionBudget", "message": message}]
    return errors.too_many_requests(_VIOLATION, causes=causes, retry_after=retry_after)


def _changed_meanwhile(name: str) -> ApiError:
    return _refused(f"The disruption budget {name} is still being processed by the server.", retry_after=10)


# deletion


class _NoAdmission:
    """Admission of the deletion: none, because admission has seen the eviction."""

    async def mutate(self, attributes: Attributes) -> None:
        return

    async def validate(self, attributes: Attributes) -> None:
        return


async def _delete(server: Server, stored: Stored, options: Object) -> None:
    pods, (namespace, name) = pods_resource(server), stored.key
    deletion = request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}")
    parsed = delete_options(deletion, options)
    deleter = Deleter(server.store, server.clock, _NoAdmission())
    with server.worker_thread.work() as work:
        context = RequestContext(deletion, parse(deletion), _SERVER, pods, "v1", negotiate(""), server.clock, work)
        if parsed.dry_run:
            await deleter.delete(context, namespace, name, parsed)
            return
        _check_preconditions(stored, options)
        _set_disruption_target(server, pods, stored)
        free = {key: value for key, value in options.items() if key != "preconditions"}
        await deleter.delete(context, namespace, name, delete_options(deletion, free))


async def _delete_unguarded(server: Server, stored: Stored, options: Object, budget: str) -> None:
    """Delete a pod that is not ready at the version that was checked; a 429 if it has changed."""
    try:
        await _delete(server, stored, options)
    except ApiError as error:
        names_revision = bool((options.get("preconditions") or {}).get("resourceVersion"))
        if error.code == 409 and not names_revision:
            raise _changed_meanwhile(budget) from error
        raise


def _check_preconditions(stored: Stored, options: Object) -> None:
    """Check the preconditions before the condition is written, which changes the resourceVersion."""
    wanted, revision = options.get("preconditions") or {}, str(stored.revision)
    if (uid := wanted.get("uid")) and uid != stored.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({stored.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise errors.conflict("", "Pod", stored.key.name, why)
    if (named := wanted.get("resourceVersion")) and named != revision:
        why = (
            f"the ResourceVersion in the precondition ({named}) does not match the ResourceVersion in record "
            f"({revision}). The object might have been modified"
        )
        raise errors.conflict("", "Pod", stored.key.name, why)


def _set_disruption_target(server: Server, pods: Resource, stored: Stored) -> None:
    """Set the condition DisruptionTarget of the pod."""
    pod = stored.object()
    status = pod.get("status") or {}
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    conditions = with_pod_condition(status.get("conditions"), condition, server.clock.now())
    if conditions is not None:
        changed = {**pod, "status": {**status, "conditions": conditions}}
        server.store.commit(pods.key, changed, stored.fields, expect=stored)
