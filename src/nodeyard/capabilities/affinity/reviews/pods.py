"""Pods: labelled with whose they are, and refused where they could leave the class of their application.

The labels are ours: what a user writes there is overwritten, or removed where it is not true. Whether a pod is checked
does not depend on them. The stamp of the class says which one the pod keeps to, so that a policy inside the API server
can hold it to that while nobody else can answer.

A pod is checked when it is made, and never after: nobody can widen where it may go, and a class that changes must not
keep running pods from being changed or deleted.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.collecting import is_served_elsewhere
from nodeyard.capabilities.affinity.owners import ReviewedMeta, decoded_metadata, finder
from nodeyard.capabilities.affinity.planning.daemons import node_of_daemon
from nodeyard.capabilities.affinity.planning.lineage import Lineage, Owned, Pending, Unknown, walk
from nodeyard.capabilities.affinity.planning.placement import Decision, Placement, Subject, place
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.reviews.ancestry import ancestry
from nodeyard.capabilities.affinity.reviews.happenings import happening
from nodeyard.capabilities.affinity.surroundings import Surroundings
from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX
from nodeyard.kube.node_affinity import Affinity, NodeSelector
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import Lookup, Review, Verdict, allowed, denied, patched

LINEAGE_LABELS: Final[tuple[str, ...]] = (
    names.MANAGED,
    names.APPLICATION_GROUP,
    names.APPLICATION_KIND,
    names.APPLICATION_NAME,
    names.TENANT_RESOURCE,
    names.AFFINITY_CLASS,
)
"""Ours on every pod."""
_OURS: Final = frozenset(LINEAGE_LABELS)
_STAMP_ALONE: Final = frozenset({names.AFFINITY_CLASS})

_ALLOWED: Final = allowed()
_UNREADABLE_CODE: Final = 400


# whose it is


def review_lineage(review: Review, view: View) -> Verdict | Lookup:
    """Adds the labels; admits in every case."""
    pod = review.object or {}
    try:
        metadata = decoded_metadata(pod)
    except msgspec.ValidationError as error:
        return _malformed(error)
    if metadata.deletion_timestamp is not None:
        return _ALLOWED
    lineage = lineage_of(review, metadata, view)
    if isinstance(lineage, Pending):
        return Lookup(lineage.refs)
    ours = our_labels(view)
    if isinstance(lineage, Unknown) and review.operation == "UPDATE":
        due = decoded_metadata(review.old_object or {}).labels
    else:
        due = labels_due(pod, lineage, review.namespace, view)
    if not due.keys() <= ours:
        due = {key: value for key, value in due.items() if key in ours}
    labels = _labelled(metadata.labels, due, ours)
    return _ALLOWED if labels is None else patched({**pod, "metadata": {**pod["metadata"], "labels": labels}})


def lineage_of(review: Review, metadata: ReviewedMeta, view: View) -> Lineage | Pending:
    """Of the object that a request is about."""
    owners = metadata.owner_references
    if len(owners) == 1 and not review.answers:
        known = ancestry(owners[0], review.namespace, view)
        if known is not None:
            return known
    group, version = review.kind.group, review.kind.version
    ref = ObjectRef(
        api_version=f"{group}/{version}" if group else version,
        kind=review.kind.kind,
        name=metadata.name or metadata.generate_name,
        namespace=review.namespace,
        uid=metadata.uid,
    )
    return walk(ref, metadata, finder(view, review.answers))


def labels_due(pod: Object, lineage: Lineage, namespace: str, view: View) -> dict[str, str]:
    """Those of ours that a pod, or a template of one, should have."""
    if not isinstance(lineage, Owned):
        return {}
    application = lineage.application
    due = {
        names.MANAGED: names.TRUE,
        names.APPLICATION_GROUP: application.group[:LABEL_VALUE_MAX],
        names.APPLICATION_KIND: application.kind,
        names.APPLICATION_NAME: application.name,
        names.TENANT_RESOURCE: "false",
    }
    if stamp := _stamp(pod, lineage, namespace, view):
        due[names.AFFINITY_CLASS] = stamp
    return due


def _stamp(pod: Object, lineage: Owned, namespace: str, view: View) -> str:
    """The class of its application; of one that changes its class, the one that the pod keeps to."""
    labels = lineage.release.metadata.labels
    name = labels.get(names.AFFINITY_CLASS, "")
    if not name or names.PREVIOUS_CLASS not in labels:
        return name
    try:
        subject = pod_subject(pod, decoded_metadata(pod), namespace, "")
    except msgspec.ValidationError:
        return name
    placement = place(subject, lineage, Surroundings(view, namespace))
    return placement.affinity_class if placement.reason is Reason.INSIDE_PREVIOUS else name


def our_labels(view: View) -> frozenset[str]:
    """Those that we set, and let nobody else set. Beside CozyStack only the stamp: the others it writes itself, also
    where we may not read an owner, and its own rules go by them."""
    return _STAMP_ALONE if is_served_elsewhere(view) else _OURS


def _labelled(labels: dict[str, str], due: dict[str, str], ours: frozenset[str]) -> dict[str, str] | None:
    """The labels as they should be; None where they are."""
    theirs = labels.keys() - ours
    if len(theirs) + len(due) == len(labels) and due.items() <= labels.items():
        return None
    return {key: value for key, value in labels.items() if key in theirs} | due


# where it may go


def review_placement(review: Review, view: View) -> Verdict | Lookup:
    pod = review.object or {}
    try:
        metadata = decoded_metadata(pod)
        name = metadata.name or review.name or metadata.generate_name
        subject = pod_subject(pod, metadata, review.namespace, f"pod {review.namespace}/{name}")
    except msgspec.ValidationError as error:
        return _malformed(error)
    lineage = lineage_of(review, metadata, view)
    if isinstance(lineage, Pending):
        return Lookup(lineage.refs)
    placement = place(subject, lineage, Surroundings(view, review.namespace))
    facts = facts_of(placement, lineage)
    if placement.decision is Decision.ALLOWED:
        return Verdict(True, warnings=placement.warnings, facts=facts)
    verdict = allowed() if placement.is_allowed else denied(placement.message)
    return (
        verdict.warning(*placement.warnings)
        .stating(**facts)
        .audited(decision=placement.decision.value, reason=placement.reason.value)
        .recording(*happening(placement, lineage, metadata, review.namespace))
    )


def facts_of(placement: Placement, lineage: Lineage) -> dict[str, str]:
    """What is counted."""
    facts = {"class": placement.affinity_class, "decision": placement.decision, "reason": placement.reason}
    if isinstance(lineage, Owned):
        application = lineage.application
        facts["application"] = f"{application.kind}/{lineage.release.ref.namespace}/{application.name}"
    return facts


def pod_subject(pod: Object, metadata: ObjectMeta, namespace: str, what: str) -> Subject:
    """Raises ValidationError where its spec is none."""
    subject = subject_of(pod.get("spec") or {}, namespace, what)
    node = node_of_daemon(metadata, subject.required)
    return subject._replace(node=node) if node else subject


def subject_of(spec: Object, namespace: str, what: str) -> Subject:
    """Raises ValidationError where the spec is none."""
    return Subject(what, namespace, spec.get("nodeSelector") or {}, _required(spec.get("affinity")))


def _required(affinity: Object | None) -> NodeSelector | None:
    if not affinity or not affinity.get("nodeAffinity"):
        return None
    return msgspec.convert(affinity, Affinity).required_nodes


def _malformed(error: Exception) -> Verdict:
    """An API server does not ask about such a pod."""
    return denied(f"this is no pod: {error}", code=_UNREADABLE_CODE, reason="BadRequest")
