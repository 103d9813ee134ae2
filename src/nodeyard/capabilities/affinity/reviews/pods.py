"""Review pods: label them with their application, and deny those that could run outside its class.

The operator owns the labels: values of users are overwritten, or removed if they are wrong. The check does not depend
on the labels. The class label names the class that the pod fits, so that an admission policy inside the API server can
enforce it while no webhook responds.

A pod is checked on creation only: its placement cannot be widened later, and a change of class must not block updates
or the deletion of running pods.

Events about denied pods and pods with warnings are on their application: its user does not see the pod. If the
application is unknown or there is none, the Event is on the controller that creates the pods. A user who creates a pod
directly gets the response.

Controllers retry with a new name each time. The Event names the generateName instead, so that all retries are one Event
with a count.

The lineage of a pod's owner is cached: a controller creates many pods, and the path up from it is the same for all. An
entry is valid while the informer caches hold the identical object for every step of the path: any change, even of a
label, replaces the object, and no Application has recorded a HelmRelease on the path that none had recorded. Only
paths that were found in the informer caches and led to an application are cached.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collect.applications import PlacementContext, recorded_applications
from nodeyard.capabilities.affinity.collect.owners import (
    ReviewedMeta,
    decoded_metadata,
    find_named,
    finder,
    is_served_elsewhere,
    metadata_of,
    without_foreign_records,
)
from nodeyard.capabilities.affinity.messages.pods import InsidePreviousClass, PodMessage
from nodeyard.capabilities.affinity.planning.class_record import Record
from nodeyard.capabilities.affinity.planning.containment import node_of_daemon
from nodeyard.capabilities.affinity.planning.lineage import (
    Application,
    Find,
    Lineage,
    LookupResult,
    Owned,
    Pending,
    Records,
    Unknown,
    walk,
)
from nodeyard.capabilities.affinity.planning.placement import Decision, Placement, Subject, place
from nodeyard.client.resources import view_kind
from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX
from nodeyard.kube.node_affinity import Affinity, NodeSelector
from nodeyard.kube.objects import ObjectMeta, OwnerReference
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Event, View
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse, Lookup, allowed, denied, patched

LINEAGE_LABELS: Final[tuple[str, ...]] = (
    names.MANAGED,
    names.APPLICATION_GROUP,
    names.APPLICATION_KIND,
    names.APPLICATION_NAME,
    names.TENANT_RESOURCE,
    names.AFFINITY_CLASS,
)
"""Labels of every pod that the operator owns."""
_OURS: Final = frozenset(LINEAGE_LABELS)
_CLASS_LABEL_ONLY: Final = frozenset({names.AFFINITY_CLASS})

_ALLOWED: Final = allowed()
_UNREADABLE_CODE: Final = 400


# lineage


def review_lineage(review: AdmissionRequest, view: View) -> AdmissionResponse | Lookup:
    """Add the labels; always admit the pod."""
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
    labels = _correct_labels(metadata.labels, due, ours)
    return _ALLOWED if labels is None else patched({**pod, "metadata": {**pod["metadata"], "labels": labels}})


def lineage_of(review: AdmissionRequest, metadata: ReviewedMeta, view: View) -> Lineage | Pending:
    """Return the lineage of the reviewed object."""
    owners = metadata.owner_references
    if len(owners) == 1 and not review.answers:
        known = cached_lineage(owners[0], review.namespace, view)
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
    return walk(ref, metadata, finder(view, review.answers), partial(recorded_applications, view))


def labels_due(pod: Object, lineage: Lineage, namespace: str, view: View) -> dict[str, str]:
    """Return the lineage labels that a pod or pod template should have."""
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
    if class_label := _class_label(pod, lineage, namespace, view):
        due[names.AFFINITY_CLASS] = class_label
    return due


def _class_label(pod: Object, lineage: Owned, namespace: str, view: View) -> str:
    """Return the class of its application; while that changes its class, the one that the pod fits."""
    name = next((each.affinity_class for each in lineage.owning_releases if each.affinity_class), "")
    if not name or not any(each.previous for each in lineage.owning_releases):
        return name
    try:
        subject = pod_subject(pod, decoded_metadata(pod), namespace, "")
    except msgspec.ValidationError:
        return name
    placement = place(subject, lineage, PlacementContext(view, namespace))
    return placement.affinity_class if isinstance(placement.message, InsidePreviousClass) else name


def our_labels(view: View) -> frozenset[str]:
    """Return the labels that only the operator may set.

    Beside CozyStack this is only the class label. CozyStack writes the others itself, even if the operator cannot read
    an owner, and its own rules depend on them.
    """
    return _CLASS_LABEL_ONLY if is_served_elsewhere(view) else _OURS


def _correct_labels(labels: dict[str, str], due: dict[str, str], ours: frozenset[str]) -> dict[str, str] | None:
    """Return the corrected labels; None if they are correct."""
    theirs = labels.keys() - ours
    if len(theirs) + len(due) == len(labels) and due.items() <= labels.items():
        return None
    return {key: value for key, value in labels.items() if key in theirs} | due


# placement


def review_placement(review: AdmissionRequest, view: View) -> AdmissionResponse | Lookup:
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
    placement = place(subject, lineage, PlacementContext(view, review.namespace))
    facts = facts_of(placement, lineage)
    if placement.decision is Decision.ALLOWED:
        return AdmissionResponse(True, warnings=placement.warnings, facts=facts)
    response = allowed() if placement.is_allowed else denied(placement.violation)
    return (
        response.with_warnings(*placement.warnings)
        .with_facts(**facts)
        .with_audit_annotations(decision=placement.decision.value, reason=placement.reason)
        .with_events(*placement_events(placement, lineage, metadata, review.namespace))
    )


def facts_of(placement: Placement, lineage: Lineage) -> dict[str, str]:
    """Return the facts for metrics."""
    facts = {"class": placement.affinity_class, "decision": placement.decision, "reason": placement.reason}
    if isinstance(lineage, Owned):
        application = lineage.application
        facts["application"] = f"{application.kind}/{lineage.release.ref.namespace}/{application.name}"
    return facts


def pod_subject(pod: Object, metadata: ObjectMeta, namespace: str, what: str) -> Subject:
    """Return the subject of a pod; raise ValidationError if its spec is malformed."""
    subject = subject_of(pod.get("spec") or {}, namespace, what)
    node = node_of_daemon(metadata, subject.required)
    return subject._replace(node=node) if node else subject


def subject_of(spec: Object, namespace: str, what: str) -> Subject:
    """Return the subject of a pod spec; raise ValidationError if it is malformed."""
    selector, required = spec.get("nodeSelector") or {}, _required_terms(spec.get("affinity"))
    return Subject(what, namespace, selector, required, node_name=spec.get("nodeName") or "")


def _required_terms(affinity: Object | None) -> NodeSelector | None:
    if not affinity or not affinity.get("nodeAffinity"):
        return None
    return msgspec.convert(affinity, Affinity).required_nodes


def _malformed(error: Exception) -> AdmissionResponse:
    """Deny a malformed pod; an API server does not send one."""
    return denied(f"malformed pod: {error}", code=_UNREADABLE_CODE, reason="BadRequest")


# events


WARNING: Final = "Warning"


def placement_events(placement: Placement, lineage: Lineage, pod: ReviewedMeta, namespace: str) -> Iterator[Event]:
    ref = application_ref(lineage) if isinstance(lineage, Owned) else _controller_ref(pod, namespace)
    if placement.decision is Decision.AUDITED or ref is None:
        return
    message = placement.message
    if pod.generate_name and isinstance(message, PodMessage):
        message = msgspec.structs.replace(message, subject=f"pod {namespace}/{pod.generate_name}*")
    yield Event(ref, WARNING, message.reason, message.text())


def _controller_ref(pod: ReviewedMeta, namespace: str) -> ObjectRef | None:
    for owner in pod.owner_references:
        if owner.controller:
            api_version, kind, name, uid = owner.api_version, owner.kind, owner.name, owner.uid
            return ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace, uid=uid)
    return None


def application_ref(lineage: Owned) -> ObjectRef:
    """Return the Application that recorded or owns the release; the release if none does."""
    application = lineage.application
    if lineage.record is not None:
        return ObjectRef(
            api_version=f"{application.group}/{names.VERSION}",
            kind=application.kind,
            name=application.name,
            namespace=lineage.release.ref.namespace,
            uid=lineage.record.uid,
        )
    for owner in lineage.release.metadata.owner_references:
        if (owner.kind, owner.name) == (application.kind, application.name):
            namespace = lineage.release.ref.namespace
            return ObjectRef(
                api_version=owner.api_version, kind=owner.kind, name=owner.name, namespace=namespace, uid=owner.uid
            )
    return lineage.release.ref


# cache of lineages


MAX_ENTRIES: Final = 4096


class _Step(NamedTuple):
    """An object on the path, and its key in the view."""

    kind: str
    name: str
    namespace: str
    object: Any


class _Entry(NamedTuple):
    path: tuple[_Step, ...]
    lineage: Owned


_RELEASE: Final = f"{names.RELEASE_KIND}.{names.FLUX_GROUP}"
_Key: TypeAlias = tuple[str, str, str, str, str]
_cache: dict[_Key, _Entry] = {}


def cached_lineage(owner: OwnerReference, namespace: str, view: View) -> Owned | None:
    """Return the lineage of an object with this single owner; None if it has to be walked."""
    key = (owner.uid, owner.name, namespace, owner.kind, owner.api_version)
    known = _cache.get(key)
    if known is not None and _is_current(known, view):
        return known.lineage
    # The APIService that serves Applications decides too: see `owners.without_foreign_records`.
    service = view.get(watched.APISERVICES.kind, watched.APPS_API_SERVICE)
    path: list[_Step] = [_Step(watched.APISERVICES.kind, watched.APPS_API_SERVICE, "", service)]
    find = without_foreign_records(_recording_find(view, path), view)
    ref = ObjectRef(api_version=owner.api_version, kind=owner.kind, name=owner.name, namespace=namespace, uid=owner.uid)
    metadata = find(ref)
    records = _recording_records(view, path)
    lineage = walk(ref, metadata, find, records) if isinstance(metadata, ObjectMeta) else None
    if not isinstance(lineage, Owned):
        _cache.pop(key, None)
        return None
    if len(_cache) >= MAX_ENTRIES and key not in _cache:
        # Evict the oldest entry; one still in use is added again.
        del _cache[next(iter(_cache))]
    _cache[key] = _Entry(tuple(path), lineage)
    return lineage


def _is_current(known: _Entry, view: View) -> bool:
    get = view.get
    try:
        for kind, name, place, there in known.path:
            if get(kind, name, place) is not there:
                return False
    except KeyError:
        # The kind is no longer watched.
        return False
    recorded = {each.release.ref.name for each in known.lineage.owning_releases if each.record is not None}
    unrecorded = (each for each in known.path if each.kind == _RELEASE and each.name not in recorded)
    return not any(any(recorded_applications(view, each.namespace, each.name)) for each in unrecorded)


def _recording_records(view: View, path: list[_Step]) -> Records:
    """Return a lookup of records in the informer caches that appends the Applications to the path."""

    def records(namespace: str, release: str) -> Iterator[tuple[Application, Record | None]]:
        for application, record in recorded_applications(view, namespace, release):
            if record is not None:
                kind = watched.view_kind(application.kind)
                path.append(_Step(kind, application.name, namespace, view.get(kind, application.name, namespace)))
            yield application, record

    return records


def _recording_find(view: View, path: list[_Step]) -> Find:
    """Return a lookup in the informer caches that appends what it finds to the path."""

    def find(ref: ObjectRef) -> LookupResult:
        kind = view_kind(ref.api_version, ref.kind)
        found = find_named(view, kind, ref)
        metadata = None if found is None else metadata_of(found)
        if metadata is None or (ref.uid and metadata.uid != ref.uid):
            return None
        path.append(_Step(kind, ref.name, metadata.namespace, found))
        return metadata

    return find
