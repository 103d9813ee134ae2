"""Resource requests of a bound pod, computed as the scheduler of Kubernetes 1.36 does.

    the larger of      all containers with all sidecars
                       each init container with the sidecars that started before it
    replaced by        the pod's own requests, for CPU, memory and huge pages
    plus               overhead

A resize in flight counts with its maximum: the largest of the requested, the allocated and the actual resources. If the
resize is infeasible, only the latter two count.

The structs have only the fields that this needs; other views of a pod extend them. Empty and null are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from nodeyard.kube.objects import PlainStruct
from nodeyard.kube.resource_list import CPU, HUGE_PAGES, MEMORY, Amounts, add, parse_amounts, raise_to, round_up

SIDECAR: Final = "Always"
RESIZE_PENDING: Final = "PodResizePending"
INFEASIBLE: Final = "Infeasible"


class Requested(PlainStruct, frozen=True):
    """The resources of a container or pod, without its limits."""

    requests: dict[str, str] | None = None


class RequestingContainer(PlainStruct, frozen=True):
    name: str = ""
    resources: Requested | None = None
    restart_policy: str | None = None
    """`Always` on an init container makes it a sidecar."""


class GivenContainer(PlainStruct, frozen=True):
    """Container status reported by the kubelet."""

    name: str = ""
    resources: Requested | None = None
    """The resources in effect."""
    allocated_resources: dict[str, str] | None = None
    """The allocated resources."""


class PodCondition(PlainStruct, frozen=True):
    type: str = ""
    reason: str = ""


class RequestingSpec(PlainStruct, frozen=True):
    containers: tuple[RequestingContainer, ...] | None = None
    init_containers: tuple[RequestingContainer, ...] | None = None
    resources: Requested | None = None
    overhead: dict[str, str] | None = None


class GivenStatus(PlainStruct, frozen=True):
    container_statuses: tuple[GivenContainer, ...] | None = None
    init_container_statuses: tuple[GivenContainer, ...] | None = None
    conditions: tuple[PodCondition, ...] | None = None
    resources: Requested | None = None
    allocated_resources: dict[str, str] | None = None


class RequestingPod(PlainStruct, frozen=True):
    spec: RequestingSpec = RequestingSpec()
    status: GivenStatus = GivenStatus()


class Requesting(Protocol):
    """RequestingPod, or a view with more fields."""

    @property
    def spec(self) -> RequestingSpec: ...
    @property
    def status(self) -> GivenStatus: ...


def of_pod(pod: Requesting) -> Amounts:
    """Return the requests of a pod; raise QuantityError with the resource and the invalid text."""
    spec, status = pod.spec, pod.status
    total = _of_containers(spec, status)
    if spec.resources is not None and spec.resources.requests:
        total |= _of_pod_itself(spec.resources.requests, status)
    if spec.overhead:
        add(total, parse_amounts(spec.overhead))
    return round_up(total)


def relevant_statuses(
    containers: Iterable[RequestingContainer] | None, given: Iterable[GivenContainer] | None
) -> tuple[GivenContainer, ...]:
    """Return the statuses that differ from the spec; the others do not change the requests."""
    wanted = {each.name: _requests(each.resources) for each in containers or ()}
    return tuple(each for each in given or () if not _is_settled(each, wanted.get(each.name)))


def _is_settled(given: GivenContainer, wanted: Mapping[str, str] | None) -> bool:
    return given.resources is None or given.resources.requests == given.allocated_resources == wanted


def _requests(resources: Requested | None) -> Mapping[str, str] | None:
    return None if resources is None else resources.requests


def _of_containers(spec: RequestingSpec, status: GivenStatus) -> Amounts:
    given = {each.name: each for each in status.container_statuses or ()}
    total: Amounts = {}
    for container in spec.containers or ():
        add(total, _of_container(container, given.get(container.name), status))
    if spec.init_containers:
        given |= {each.name: each for each in status.init_container_statuses or ()}
        sidecars, peak = _of_init_containers(spec.init_containers, given, status)
        add(total, sidecars)
        raise_to(total, peak)
    return total


def _of_init_containers(
    containers: Iterable[RequestingContainer], given: Mapping[str, GivenContainer], status: GivenStatus
) -> tuple[Amounts, Amounts]:
    """Return the sum of the sidecars, and the maximum at any moment before the pod has started."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in containers:
        if container.restart_policy == SIDECAR:
            add(sidecars, _of_container(container, given.get(container.name), status))
            continue
        # The status counts for sidecars alone: another init container cannot be resized.
        moment = _of_container(container, None, status)
        add(moment, sidecars)
        raise_to(peak, moment)
    return sidecars, peak


def _of_container(container: RequestingContainer, given: GivenContainer | None, status: GivenStatus) -> Amounts:
    wanted = _requests(container.resources)
    if given is None or given.resources is None:
        return parse_amounts(wanted)
    return _effective(wanted, given.resources.requests, given.allocated_resources, status)


def _of_pod_itself(wanted: Mapping[str, str], status: GivenStatus) -> Amounts:
    """Return pod-level requests, which replace the sum of the containers'."""
    if status.resources is None:
        amounts = parse_amounts(wanted)
    else:
        amounts = _effective(wanted, status.resources.requests, status.allocated_resources, status)
    return {name: amounts.get(name, 0) for name in wanted if _is_of_pods(name)}


def _is_of_pods(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES)


def _effective(
    wanted: Mapping[str, str] | None,
    actual: Mapping[str, str] | None,
    allocated: Mapping[str, str] | None,
    status: GivenStatus,
) -> Amounts:
    amounts = {} if _is_infeasible(status) else parse_amounts(wanted)
    raise_to(amounts, parse_amounts(actual))
    raise_to(amounts, parse_amounts(allocated))
    return amounts


def _is_infeasible(status: GivenStatus) -> bool:
    """Return True if a requested resize is infeasible on the node."""
    pending = next((each for each in status.conditions or () if each.type == RESIZE_PENDING), None)
    return pending is not None and pending.reason == INFEASIBLE
