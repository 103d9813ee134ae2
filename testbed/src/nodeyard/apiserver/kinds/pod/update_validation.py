"""Validation of updates of pods and of their status."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import takewhile

import msgspec

from nodeyard.apiserver.kinds.pod.validation import pod_errors
from nodeyard.apiserver.kinds.validation import IMMUTABLE, faults_at, ip_errors, range_fault, subdomain_errors_at
from nodeyard.kube.fields import FieldError, forbidden, index, invalid
from nodeyard.kube.json import Object
from nodeyard.kube.names import qualified_name_faults

_ALLOWED = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_AROUND = 3
"""Lines around a difference that a message shows."""
_COMPARED = 300
"""Lines that are compared with each other, in 10 ms."""
_SHOWN = 20
_TOLERATION = ("key", "operator", "value", "effect")
_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def update_errors(new: Object, old: Object) -> list[FieldError]:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if spec == before:
        return []
    errors = pod_errors(new)
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(before.get(field) or ()):
            return [*errors, forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
    deadline, stops = _deadline_errors(spec, before)
    errors += deadline
    if stops:
        return errors
    errors += _toleration_errors(spec, before) + _gate_errors(spec, before)
    munged = _munged(spec, before)
    if before.get("schedulingGates"):
        errors += _gated_errors(munged, before)
        munged = _with_old_placement(munged, before)
    if munged != before:
        errors.append(forbidden("spec", f"{_ALLOWED}\n{_diff(before, munged)}"))
    return errors


def _deadline_errors(spec: Object, before: Object) -> tuple[list[FieldError], bool]:
    path = "spec.activeDeadlineSeconds"
    deadline, earlier = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if deadline is None:
        if earlier is None:
            return [], False
        return [invalid(path, None, "must not update from a positive integer to nil value")], False
    if not 0 <= deadline < 2**31:
        return [invalid(path, deadline, range_fault(0, 2**31 - 1))], True
    if earlier is not None and earlier < deadline:
        return [invalid(path, deadline, "must be less than or equal to previous value")], True
    return [], False


def _toleration_errors(spec: Object, before: Object) -> list[FieldError]:
    if _without_seconds(before) <= _without_seconds(spec):
        return []
    return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _without_seconds(spec: Object) -> set[tuple[str, ...]]:
    return {tuple(each.get(field, "") for field in _TOLERATION) for each in spec.get("tolerations") or ()}


def _gate_errors(spec: Object, before: Object) -> list[FieldError]:
    known = {gate["name"] for gate in before.get("schedulingGates") or ()}
    return [
        forbidden(
            f"{index('spec.schedulingGates', place)}.name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for place, gate in enumerate(spec.get("schedulingGates") or ())
        if gate["name"] not in known
    ]


def _munged(spec: Object, before: Object) -> Object:
    """Return the new spec with all mutable fields as they were."""
    munged = dict(spec)
    for field in ("containers", "initContainers"):
        if field in munged:
            munged[field] = [
                {**container, "image": old.get("image", "")}
                for container, old in zip(munged[field], before.get(field) or (), strict=True)
            ]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        munged.pop(field, None)
        if field in before:
            munged[field] = before[field]
    grace = before.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = grace
    return munged


def _gated_errors(munged: Object, before: Object) -> list[FieldError]:
    """Validate placement of a gated pod, which may be narrowed."""
    selector, earlier = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in earlier.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        return [invalid("spec.nodeSelector", selector, detail)]
    terms, before_terms = _terms(munged), _terms(before)
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if before_terms and len(terms) != len(before_terms):
        return [invalid(path, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")]
    return [
        invalid(index(path, place), terms[place], "only additions are allowed (no mutations or deletions)")
        for place, term in enumerate(before_terms)
        if not _only_adds(terms[place], term)
    ]


def _terms(spec: Object) -> list[Object]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []


def _only_adds(term: Object, before: Object) -> bool:
    return all(
        (term.get(field) or [])[: len(before.get(field) or [])] == (before.get(field) or [])
        for field in ("matchExpressions", "matchFields")
    )


def _with_old_placement(munged: Object, before: Object) -> Object:
    placed = {field: value for field, value in munged.items() if field not in ("nodeSelector", "affinity")}
    if "nodeSelector" in before:
        placed["nodeSelector"] = before["nodeSelector"]
    affinity = {field: value for field, value in (munged.get("affinity") or {}).items() if field != "nodeAffinity"}
    earlier = before.get("affinity") or {}
    if "nodeAffinity" in earlier:
        affinity["nodeAffinity"] = earlier["nodeAffinity"]
    if affinity or "affinity" in before:
        placed["affinity"] = affinity
    return placed


def _diff(before: Object, after: Object) -> str:
    """Return the lines that differ, with those around them. Comparing many takes quadratic time: of these the first."""
    old, new = _lines(before), _lines(after)
    start = _count_alike(old, new)
    end = _count_alike(reversed(old[start:]), reversed(new[start:]))
    first, last = max(start - _AROUND, 0), max(end - _AROUND, 0)
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    if max(len(old), len(new)) > _COMPARED:
        removed, added = ([f"{sign}{line}" for line in lines[:_SHOWN]] for sign, lines in (("-", old), ("+", new)))
        return "\n".join([*removed, *added, "..."])
    lines = difflib.unified_diff(old, new, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _count_alike(old: Iterable[str], new: Iterable[str]) -> int:
    """Return the number of lines at the beginning that are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _lines(spec: Object) -> list[str]:
    return msgspec.json.format(msgspec.json.encode(spec, order="sorted"), indent=1).decode().splitlines()


def status_errors(new: Object, old: Object) -> list[FieldError]:
    status, before = new.get("status") or {}, old.get("status") or {}
    errors = _condition_errors(status)
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        errors += subdomain_errors_at("status.nominatedNodeName", nominated)
    if status.get("qosClass") != before.get("qosClass"):
        errors.append(invalid("status.qosClass", status.get("qosClass", ""), IMMUTABLE))
    errors += _container_state_errors(status, before, (old.get("spec") or {}).get("restartPolicy", ""))
    for field in ("podIPs", "hostIPs"):
        known = [address.get("ip", "") for address in before.get(field) or ()]
        for place, address in enumerate(status.get(field) or ()):
            errors += ip_errors(index(f"status.{field}", place), address.get("ip", ""), known=known)
    return errors


def _condition_errors(status: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for place, condition in enumerate(status.get("conditions") or ()):
        if condition.get("type") not in _SYSTEM_CONDITIONS:
            path = f"{index('status.conditions', place)}.Type"
            errors += faults_at(path, condition.get("type", ""), qualified_name_faults)
    return errors


def _container_state_errors(status: Object, before: Object, restart_policy: str) -> list[FieldError]:
    """Check that containers which terminated for good stay terminated."""
    if restart_policy == "Always":
        return []
    running = {
        each.get("name")
        for each in status.get("containerStatuses") or ()
        if (each.get("state") or {}).get("terminated") is None
    }
    errors: list[FieldError] = []
    for place, each in enumerate(before.get("containerStatuses") or ()):
        ended = (each.get("state") or {}).get("terminated")
        if ended is None or (ended.get("exitCode") and restart_policy == "OnFailure"):
            continue
        if each.get("name") in running:
            path = f"{index('status.containerStatuses', place)}.state"
            errors.append(forbidden(path, "may not be transitioned to non-terminated state"))
    return errors
