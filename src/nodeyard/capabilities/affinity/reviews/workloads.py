"""Workloads: their pods are judged before there are any, so that who applies a chart hears what its pods would.

Mostly a warning: the pods themselves are refused when they come. Refused is only what could never end: a selector by
one of the labels that are ours on pods, with a value that they will not have. Its controller would not know its own
pods again and make new ones for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from nodeyard.capabilities.affinity.owners import ReviewedMeta, decoded_metadata
from nodeyard.capabilities.affinity.planning.lineage import Lineage, Pending, Unknown
from nodeyard.capabilities.affinity.planning.placement import Decision, place
from nodeyard.capabilities.affinity.reviews.pods import labels_due, lineage_of, our_labels, subject_of
from nodeyard.capabilities.affinity.surroundings import Surroundings
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import View
from nodeyard.runtime.judging import invalid
from nodeyard.runtime.webhooks import Lookup, Review, Verdict, allowed

_WILL_BE: Final = {
    Decision.DENIED: "its pods will be refused",
    Decision.WARNED: "its pods will be warned about",
}


def review_workload(review: Review, view: View) -> Verdict | Lookup:
    try:
        metadata = decoded_metadata(review.object or {})
        template = template_of(review.object)
        if _is_controlled(metadata) or metadata.deletion_timestamp is not None or not _is_news(review, template):
            return allowed()
        name = metadata.name or metadata.generate_name
        what = f"template of {review.kind.kind} {review.namespace}/{name}"
        subject = subject_of(template.get("spec") or {}, review.namespace, what)
    except (msgspec.ValidationError, AttributeError, TypeError):
        # The API server says better than we what is wrong with it.
        return allowed()
    lineage = lineage_of(review, metadata, view)
    if isinstance(lineage, Pending):
        return Lookup(lineage.refs)
    if review.operation == "CREATE" and (fault := _lost_pods(review, template, lineage, view)):
        return invalid([fault])
    placement = place(subject, lineage, Surroundings(view, review.namespace))
    if placement.decision not in _WILL_BE:
        return allowed(*placement.warnings)
    others = [each for each in placement.warnings if each != placement.message]
    return allowed(f"{placement.message}: {_WILL_BE[placement.decision]}", *others)


def template_of(workload: Object | None) -> Object:
    """Of its pods."""
    spec = (workload or {}).get("spec") or {}
    if "jobTemplate" in spec:
        spec = (spec["jobTemplate"] or {}).get("spec") or {}
    found: Object = spec.get("template") or {}
    return found


def _is_controlled(metadata: ReviewedMeta) -> bool:
    """A ReplicaSet of a Deployment, a Job of a CronJob: said once is enough."""
    return any(owner.controller and owner.kind in _WORKLOADS for owner in metadata.owner_references)


_WORKLOADS: Final = frozenset({"Deployment", "CronJob"})


def _is_news(review: Review, template: Object) -> bool:
    return review.operation == "CREATE" or template != template_of(review.old_object)


# selectors


def _lost_pods(review: Review, template: Object, lineage: Lineage, view: View) -> str:
    """Why its controller would not recognize the pods that it makes."""
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
        f"{pods_have}: select them by another"
    )


def _selected(spec: Mapping[str, Any], ours: Iterable[str]) -> Iterator[tuple[str, str]]:
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    return ((key, labels[key]) for key in ours if key in labels)
