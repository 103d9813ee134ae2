"""Plan one application: its HelmRelease, with the class in the labels and the placement in the values.

    refuse    nothing is written while the application is being deleted, its definition is invalid, its spec has a
              reserved key, its name is taken, or its class is refused; an existing release stays as it is
    adopt     a HelmRelease with the three labels of this application that no other object controls
    record    the class is recorded on the Application before the release: the record decides, the labels show it
    apply     the HelmRelease, if that changes something; foreign values are removed

`_scheduling` is written last and from the class alone, so users of the application cannot set it. The user's strings in
the values may be passwords, so the plan shows them as hashes. Fields of the HelmRelease that are not built here belong
to the platform.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.applications import (
    BadApplicationName,
    ClassChanged,
    ClassRecorded,
    ClassRemoved,
    ClassSettled,
    FormerReleasePending,
    ReleaseApplied,
    ReleaseConflict,
    ReleasedOtherwise,
    ReleaseNotServed,
    ReservedKey,
    ValuesCleared,
)
from nodeyard.capabilities.affinity.messages.definitions import InvalidDefinition
from nodeyard.capabilities.affinity.messages.objects import Deleting, ObjectMessage
from nodeyard.capabilities.affinity.planning.choice import Choice, choose, is_released
from nodeyard.capabilities.affinity.planning.class_record import Record, encode, previous_label, stored_record
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot, release_name
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, ChartRef
from nodeyard.capabilities.affinity.validation import RELEASE_NAME_MAX, declaration_faults
from nodeyard.kube.json import Json, Object, json_equal
from nodeyard.kube.names import dns_1035_faults, qualified_name_faults
from nodeyard.kube.patch import merge_patch, without_nulls
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.diff import diff
from nodeyard.plan.managed_fields import drop_unapplied, preview_apply
from nodeyard.plan.model import FieldChange, ObjectRef, Verb, Write
from nodeyard.plan.secrets import conceal_texts

_EXACT: Final = ("values", "valuesFrom")
"""Fields of the spec that the operator owns as a whole: anything else in them would reach the chart."""
_CLASS_LABELS: Final = (names.AFFINITY_CLASS, names.PREVIOUS_CLASS)
_PLACEMENT: Final = (names.CLASS_FIELD, names.SCHEDULING_VALUES)
"""Values that describe the class and are shown in plain text."""


def plan_application(builder: PlanBuilder, snapshot: ApplicationSnapshot) -> None:
    refusal = _refusal(snapshot)
    if refusal is not None:
        builder.block(snapshot.ref, refusal)
        return
    choice = choose(snapshot)
    if choice.is_refused:
        builder.block(snapshot.ref, choice.message)
    if not choice.is_blocking:
        _plan_release(builder, snapshot, choice, _plan_record(builder, snapshot, choice))


# refusals


def _refusal(snapshot: ApplicationSnapshot) -> ObjectMessage | None:
    """Return why the application cannot be released, whatever its class."""
    application, definition, ref = snapshot.application, snapshot.definition, snapshot.ref
    if application["metadata"].get("deletionTimestamp"):
        return Deleting(object=ref)
    if not snapshot.is_release_served:
        return ReleaseNotServed(object=ref)
    if faults := declaration_faults(definition):
        return InvalidDefinition(object=definition.ref, errors=faults)
    if reserved := reserved_keys(application):
        return ReservedKey(object=ref, keys=reserved)
    if other := snapshot.other_release:
        return ReleasedOtherwise(object=ref, release=snapshot.release_name, other=other, definition=definition.name)
    if snapshot.release is None:
        faults = name_faults(definition, ref.name)
        return BadApplicationName(object=ref, errors=faults) if faults else None
    return conflict(snapshot, snapshot.release)


def reserved_keys(application: Object) -> list[str]:
    return sorted(key for key in application.get("spec") or {} if key.startswith(names.RESERVED_PREFIX))


def name_faults(definition: ApplicationDefinition, name: str) -> list[str]:
    """Return the faults of an application's name, in the order in which CozyStack checks it."""
    faults = dns_1035_faults(name)
    full = release_name(definition, name)
    if not faults and len(full) > RELEASE_NAME_MAX:
        left = RELEASE_NAME_MAX - len(definition.spec.release.prefix)
        faults.append(f"must be no more than {left} characters: {full!r} is the name of a Helm release")
    return faults


def conflict(snapshot: ApplicationSnapshot, release: Object) -> ReleaseConflict | FormerReleasePending | None:
    """Return why a HelmRelease of this name cannot belong to the application."""
    application, metadata = snapshot.application, release["metadata"]
    ref, name = snapshot.ref, snapshot.release_name
    if not is_released(application, release):
        labels = metadata.get("labels") or {}
        others = [labels.get(each, "") for each in (names.APPLICATION_KIND, names.APPLICATION_NAME)]
        return ReleaseConflict(object=ref, release=name, of=" ".join(filter(None, others)))
    if metadata.get("deletionTimestamp"):
        return FormerReleasePending(object=ref, release=name)
    owner = next((each for each in metadata.get("ownerReferences") or () if each.get("controller")), None)
    if owner is None or owner.get("uid") == application["metadata"].get("uid"):
        return None
    is_former = (owner.get("kind"), owner.get("name")) == (application["kind"], application["metadata"]["name"])
    if is_former:
        # It belongs to a deleted application of the same name: the garbage collector is about to delete it.
        return FormerReleasePending(object=ref, release=name)
    return ReleaseConflict(object=ref, release=name, of=f"{owner.get('kind')} {owner.get('name')}")


# the record


def _plan_record(builder: PlanBuilder, snapshot: ApplicationSnapshot, choice: Choice) -> str:
    """Write the record of the class if it changes; return the id of the action."""
    application, record = snapshot.application, record_of(snapshot, choice)
    if stored_record(application) == record:
        return ""
    patch = {"metadata": {"annotations": {names.CLASS_RECORD: encode(record)}}}
    message = ClassRecorded(object=snapshot.ref, affinity_class=choice.name)
    changed = diff(application, merge_patch(application, patch))
    return builder.act(Verb.PATCH, snapshot.ref, message, Write(body=patch), diff=changed)


def record_of(snapshot: ApplicationSnapshot, choice: Choice) -> Record:
    """Return the record of a choice that does not block."""
    return Record(
        uid=snapshot.ref.uid,
        release=snapshot.release_name,
        affinity_class=choice.name,
        source=choice.source,
        previous=choice.previous,
    )


# the release


def _plan_release(builder: PlanBuilder, snapshot: ApplicationSnapshot, choice: Choice, recording: str) -> None:
    live, body = snapshot.release, release_object(snapshot, choice)
    ref = ObjectRef(
        api_version=names.FLUX_API_VERSION,
        kind=names.RELEASE_KIND,
        namespace=body["metadata"]["namespace"],
        name=body["metadata"]["name"],
        uid="" if live is None else live["metadata"].get("uid", ""),
    )
    if live is None:
        # The cache may be stale: do not take over a HelmRelease that somebody else has just created.
        write, message = Write(body=body, is_first=True), _applied(snapshot, choice, None, body)
        builder.act(Verb.APPLY, ref, message, write, diff=_diff(None, body), after=(recording,))
        return
    cleared, first = live, ""
    if foreign := _foreign_patch(live, body):
        cleared = merge_patch(live, foreign)
        clear = ValuesCleared(object=snapshot.ref, release=ref.name)
        changed = _diff(live, cleared)
        first = builder.act(Verb.PATCH, ref, clear, Write(body=foreign), diff=changed, part="values")
    after = _preview(cleared, body)
    if after is not cleared:
        message, changed = _applied(snapshot, choice, live, after), _diff(cleared, after)
        builder.act(Verb.APPLY, ref, message, Write(body=body), diff=changed, after=(recording, first))


def _diff(live: Object | None, after: Object) -> tuple[FieldChange, ...]:
    return diff(None if live is None else _conceal(live), _conceal(after))


def _conceal(release: Object) -> Object:
    """Replace the user's strings in the values by hashes; keep the values of the class. Flux requires no spec."""
    spec = release.get("spec") or {}
    values = {
        name: value if name in _PLACEMENT else conceal_texts(value)
        for name, value in (spec.get("values") or {}).items()
    }
    return {**release, "spec": {**spec, "values": values}}


def _applied(
    snapshot: ApplicationSnapshot, choice: Choice, live: Object | None, after: Object
) -> ReleaseApplied | ClassChanged | ClassRemoved | ClassSettled:
    """Return the message of an apply: does it change the class, complete such a change, or neither."""
    ref, name, affinity_class = snapshot.ref, snapshot.release_name, choice.name
    if live is not None:
        before, then = (each["metadata"].get("labels") or {} for each in (live, after))
        if before.get(names.AFFINITY_CLASS) != then.get(names.AFFINITY_CLASS):
            if not affinity_class:
                return ClassRemoved(object=ref)
            previous = choice.previous[0] if choice.previous else ""
            return ClassChanged(object=ref, affinity_class=affinity_class, previous=previous)
        if names.PREVIOUS_CLASS in before and names.PREVIOUS_CLASS not in then and affinity_class:
            return ClassSettled(object=ref, release=name, affinity_class=affinity_class)
    return ReleaseApplied(object=ref, release=name, affinity_class=affinity_class)


def _preview(live: Object, body: Object) -> Object:
    """Return the release as an apply leaves it; the same object if nothing changes."""
    after = preview_apply(live, body, names.MANAGER)
    # Lists in values are atomic: the CRD of HelmRelease declares no list keys for them.
    exact = {field: body["spec"][field] for field in _EXACT}
    after = {**after, "spec": {**after["spec"], **exact}}
    return live if json_equal(without_nulls(after), without_nulls(live)) else after


def _foreign_patch(live: Object, body: Object) -> Object:
    """Return a patch that removes foreign values and class labels: an apply removes only fields of its own manager."""
    left = drop_unapplied(live, body, names.MANAGER)
    values = _extra((left.get("spec") or {}).get("values"), body["spec"]["values"])
    kept = left["metadata"].get("labels") or {}
    labels = {key: None for key in _CLASS_LABELS if key in kept and key not in body["metadata"]["labels"]}
    patch: Object = {"spec": {"values": values}} if values else {}
    return {**patch, "metadata": {"labels": labels}} if labels else patch


def _extra(left: Json, wanted: Json) -> Object:
    if not isinstance(left, dict) or not isinstance(wanted, dict):
        return {}
    found: Object = {}
    for name, value in left.items():
        if name not in wanted:
            found[name] = None
        elif below := _extra(value, wanted[name]):
            found[name] = below
    return found


# the HelmRelease


INTERVAL: Final = "5m"
RETRY_INTERVAL: Final = "30s"
_NOT_PASSED_ON: Final = ("kubectl.kubernetes.io/last-applied-configuration", names.CLASS_RECORD)


def release_object(snapshot: ApplicationSnapshot, choice: Choice) -> Object:
    """Return the body of the server-side apply."""
    application, template = snapshot.application, snapshot.definition.spec.release
    metadata = application["metadata"]
    # Retry instead of rolling back: the user has to fix the application.
    strategy = {"strategy": {"name": "RetryOnFailure", "retryInterval": RETRY_INTERVAL}}
    return {
        "apiVersion": names.FLUX_API_VERSION,
        "kind": names.RELEASE_KIND,
        "metadata": {
            "name": f"{template.prefix}{metadata['name']}",
            "namespace": metadata["namespace"],
            "labels": _labels(snapshot, choice),
            "annotations": {**_prefix_keys(metadata.get("annotations") or {}), names.CLASS_SOURCE: choice.source},
            "ownerReferences": [_owner_reference(application)],
        },
        "spec": {
            "chartRef": _chart_ref(template.chart_ref or ChartRef()),
            "interval": INTERVAL,
            "install": strategy,
            "upgrade": strategy,
            "valuesFrom": [{"kind": "Secret", "name": names.VALUES_SECRET}],
            "values": release_values(application, snapshot.classes.get(choice.name)),
        },
    }


def release_values(application: Object, affinity_class: AffinityClass | None) -> Object:
    """Return the user's values without reserved keys, and `_scheduling` from the class."""
    spec = application.get("spec") or {}
    values = {key: value for key, value in spec.items() if not key.startswith(names.RESERVED_PREFIX)}
    if affinity_class is not None:
        values[names.SCHEDULING_VALUES] = scheduling(affinity_class)
    return values


def scheduling(affinity_class: AffinityClass) -> Object:
    """Return the placement of a class in the form that charts read."""
    spec = affinity_class.spec
    found: Object = {"affinityClass": affinity_class.name}
    if spec.node_selector:
        found["nodeSelector"] = dict(spec.node_selector)
    if spec.node_affinity is not None and spec.node_affinity.required:
        found["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": spec.node_affinity.required}
    return found


def unusable_keys(metadata: Object) -> list[str]:
    """Return the label and annotation keys that are too long for the release with the prefix."""
    given = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return sorted(key for key in given if key not in _NOT_PASSED_ON and not _is_usable(key))


def _labels(snapshot: ApplicationSnapshot, choice: Choice) -> dict[str, str]:
    application = snapshot.application
    labels = {
        **snapshot.definition.spec.release.labels,
        **_prefix_keys(application["metadata"].get("labels") or {}),
        names.APPLICATION_GROUP: names.APPS_GROUP,
        names.APPLICATION_KIND: application["kind"],
        names.APPLICATION_NAME: application["metadata"]["name"],
    }
    present = ((snapshot.release or {}).get("metadata") or {}).get("labels") or {}
    if names.SHARDING_KEY in present:
        # The platform assigns an existing HelmRelease to a shard of helm-controller.
        labels[names.SHARDING_KEY] = present[names.SHARDING_KEY]
    for key in (names.AFFINITY_CLASS, names.PREVIOUS_CLASS):
        labels.pop(key, None)
    if choice.name:
        labels[names.AFFINITY_CLASS] = choice.name
    if choice.previous:
        labels[names.PREVIOUS_CLASS] = previous_label(choice.previous)
    return labels


def _prefix_keys(given: Mapping[str, str]) -> dict[str, str]:
    """Prefix the user's labels or annotations, so that they cannot set keys of the platform."""
    return {
        f"{names.USER_KEY_PREFIX}{key}": value
        for key, value in given.items()
        if key not in _NOT_PASSED_ON and _is_usable(key)
    }


def _is_usable(key: str) -> bool:
    return not qualified_name_faults(f"{names.USER_KEY_PREFIX}{key}".lower())


def _chart_ref(chart: ChartRef) -> Object:
    found = {"kind": chart.kind, "name": chart.name, "namespace": chart.namespace}
    return {name: value for name, value in found.items() if value}


def _owner_reference(application: Object) -> Object:
    return {
        "apiVersion": names.APPS_API_VERSION,
        "kind": application["kind"],
        "name": application["metadata"]["name"],
        "uid": application["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
