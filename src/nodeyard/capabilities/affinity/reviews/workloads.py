"""Review workloads: check their pod template, so that a user who applies a chart learns early about denied pods.

A violation is only a warning, since the pods themselves are denied later. A selector on a lineage label with a value
that the pods will not have is denied: the controller would not match its own pods and create new ones forever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from nodeyard.capabilities.affinity.collect.applications import PlacementContext
from nodeyard.capabilities.affinity.collect.owners import ReviewedMeta, decoded_metadata
from nodeyard.capabilities.affinity.planning.lineage import Lineage, Pending, Unknown
from nodeyard.capabilities.affinity.planning.placement import Decision, place
from nodeyard.capabilities.affinity.reviews.pods import labels_due, lineage_of, our_labels, subject_of
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse, Lookup, allowed, invalid

_CONSEQUENCES: Final = {
    Decision.DENIED: "its pods will be denied",
    Decision.WARNED: "its pods will be admitted with a warning",
}


def review_workload(review: AdmissionRequest, view: View) -> AdmissionResponse | Lookup:
    try:
        metadata = decoded_metadata(review.object or {})
        template = template_of(review.object)
        if (
            _is_controlled(metadata)
            or metadata.deletion_timestamp is not None
            or not _changes_template(review, template)
        ):
            return allowed()
        name = metadata.name or metadata.generate_name
        what = f"template of {review.kind.kind} {review.namespace}/{name}"
        subject = subject_of(template.get("spec") or {}, review.namespace, what)
    except (msgspec.ValidationError, AttributeError, TypeError):
        # The API server's own validation reports malformed objects better.
        return allowed()
    lineage = lineage_of(review, metadata, view)
    if isinstance(lineage, Pending):
        return Lookup(lineage.refs)
    if review.operation == "CREATE" and (fault := _selector_fault(review, template, lineage, view)):
        return invalid([fault])
    placement = place(subject, lineage, PlacementContext(view, review.namespace))
    if placement.decision not in _CONSEQUENCES:
        return allowed(*placement.warnings)
    violation = placement.violation
    others = [each for each in placement.warnings if each != violation]
    return allowed(f"{violation}: {_CONSEQUENCES[placement.decision]}", *others)


def template_of(workload: Object | None) -> Object:
    """Return the pod template of a workload."""
    spec = (workload or {}).get("spec") or {}
    if "jobTemplate" in spec:
        spec = (spec["jobTemplate"] or {}).get("spec") or {}
    found: Object = spec.get("template") or {}
    return found


def _is_controlled(metadata: ReviewedMeta) -> bool:
    """Return whether it is a ReplicaSet of a Deployment or a Job of a CronJob, whose owner got the warning."""
    return any(owner.controller and owner.kind in _WORKLOADS for owner in metadata.owner_references)


_WORKLOADS: Final = frozenset({"Deployment", "CronJob"})


def _changes_template(review: AdmissionRequest, template: Object) -> bool:
    return review.operation == "CREATE" or template != template_of(review.old_object)


# selectors


def _selector_fault(review: AdmissionRequest, template: Object, lineage: Lineage, view: View) -> str:
    """Return why the selector would not match the pods that the controller creates; empty if it would."""
    selected = dict(_selected((review.object or {}).get("spec") or {}, our_labels(view)))
    if not selected or isinstance(lineage, Unknown):
        return ""
    due = labels_due(template, lineage, review.namespace, view)
    lost = sorted(key for key, value in selected.items() if due.get(key) != value)
    if not lost:
        return ""
    pods_have = f"{lost[0]}={due[lost[0]]}" if lost[0] in due else f"no label {lost[0]}"
    return (
        f"spec.selector: Invalid value: {lost[0]}={selected[lost[0]]}: nodeyard sets this label, and these pods have "
        f"{pods_have}: select by another label"
    )


def _selected(spec: Mapping[str, Any], ours: Iterable[str]) -> Iterator[tuple[str, str]]:
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    return ((key, labels[key]) for key in ours if key in labels)
