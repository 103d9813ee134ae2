"""One application, planned: the HelmRelease that it is, with the class in its labels and its placement in the values.

    nothing is written    while it is deleted, its definition is unsound, a key of its spec is the platform's, its name
                          is taken, or its class is refused; then what is released stays as it is
    it is adopted         where the three labels of a HelmRelease say that it is this application's, and nobody else
                          controls it
    it is applied         where that changes something; what others have put into its values goes

`_scheduling` is written last and from the class alone, so no user of the application can say it. The user's own texts
among the values may be passwords, and stand in the plan as hashes.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.choice import Choice, choose, is_released
from nodeyard.capabilities.affinity.planning.declarations import RELEASE_NAME_MAX, declaration_faults
from nodeyard.capabilities.affinity.planning.releasing import release_object
from nodeyard.capabilities.affinity.planning.schemas import CLASS_FIELD
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot
from nodeyard.capabilities.affinity.types import ApplicationDefinition
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import dns_1035_faults
from nodeyard.kube.patch import is_same, merge_patch, without_nulls
from nodeyard.plan.diff import diff
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import FieldChange, ObjectRef, Verb, Write
from nodeyard.plan.owned import outcome, relinquished
from nodeyard.plan.secrets import conceal_texts

_EXACT: Final = ("values", "valuesFrom")
"""Fields of the spec that are ours altogether: whatever else stands there would reach the chart."""
_PLACEMENT: Final = (CLASS_FIELD, names.SCHEDULING_VALUES)
"""Values that name and describe a class, which everybody may read."""


def plan_application(draft: Draft, snapshot: ApplicationSnapshot) -> None:
    ref = application_ref(snapshot.application)
    refusal = _refusal(snapshot)
    if refusal is not None:
        reason, facts = refusal
        draft.block(ref, reason, facts)
        return
    choice = choose(snapshot)
    if choice.is_blocking or choice.reason is Reason.CLASS_WITHDRAWN:
        draft.block(ref, choice.reason, choice.facts)
    if not choice.is_blocking:
        _release(draft, snapshot, choice)


def application_ref(application: Object) -> ObjectRef:
    metadata = application["metadata"]
    return ObjectRef(
        api_version=names.APPS_API_VERSION,
        kind=application["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
    )


def release_name(definition: ApplicationDefinition, name: str) -> str:
    return f"{definition.spec.release.prefix}{name}"


def facts_of(snapshot: ApplicationSnapshot, **more: object) -> Object:
    metadata = snapshot.application["metadata"]
    return {
        "kind": snapshot.application["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "release": release_name(snapshot.definition, metadata["name"]),
        **more,
    }


# why there is none


def _refusal(snapshot: ApplicationSnapshot) -> tuple[Reason, Object] | None:
    """What keeps an application from being released, whatever its class."""
    application, definition = snapshot.application, snapshot.definition
    facts = facts_of(snapshot)
    if application["metadata"].get("deletionTimestamp"):
        return Reason.DELETING, {**facts, "object": f"{facts['kind']} {facts['namespace']}/{facts['name']}"}
    if not snapshot.is_release_served:
        return Reason.RELEASE_NOT_SERVED, facts
    if faults := declaration_faults(definition):
        return Reason.BAD_DEFINITION, {**facts, "definition": definition.name, "errors": faults}
    if reserved := reserved_keys(application):
        return Reason.RESERVED_KEY, {**facts, "keys": reserved}
    if snapshot.other_release:
        return Reason.RELEASED_OTHERWISE, {**facts, "definition": definition.name, "other": snapshot.other_release}
    if snapshot.release is None:
        faults = name_faults(definition, facts["name"])
        return (Reason.BAD_NAME, {**facts, "errors": faults}) if faults else None
    return conflict(application, snapshot.release, facts)


def reserved_keys(application: Object) -> list[str]:
    return sorted(key for key in application.get("spec") or {} if key.startswith(names.RESERVED_PREFIX))


def name_faults(definition: ApplicationDefinition, name: str) -> list[str]:
    """What is wrong with an application's name, in the order in which CozyStack looks at it."""
    faults = dns_1035_faults(name)
    full = release_name(definition, name)
    if not faults and len(full) > RELEASE_NAME_MAX:
        left = RELEASE_NAME_MAX - len(definition.spec.release.prefix)
        faults.append(f"must be no more than {left} characters: {full!r} is the name of a Helm release")
    return faults


def conflict(application: Object, release: Object, facts: Object) -> tuple[Reason, Object] | None:
    """Why a HelmRelease of this name cannot be the application's."""
    metadata = release["metadata"]
    if not is_released(application, release):
        labels = metadata.get("labels") or {}
        others = [labels.get(each, "") for each in (names.APPLICATION_KIND, names.APPLICATION_NAME)]
        return Reason.NAME_CONFLICT, {**facts, "of": " ".join(filter(None, others))}
    if metadata.get("deletionTimestamp"):
        return Reason.RELEASE_PENDING, {**facts, "why": "going"}
    owner = next((each for each in metadata.get("ownerReferences") or () if each.get("controller")), None)
    if owner is None or owner.get("uid") == application["metadata"].get("uid"):
        return None
    is_former = (owner.get("kind"), owner.get("name")) == (application["kind"], application["metadata"]["name"])
    if is_former:
        # Of an application of the same name that is gone: the garbage collector is about to take it.
        return Reason.RELEASE_PENDING, {**facts, "why": "going"}
    return Reason.NAME_CONFLICT, {**facts, "of": f"{owner.get('kind')} {owner.get('name')}"}


# the release


def _release(draft: Draft, snapshot: ApplicationSnapshot, choice: Choice) -> None:
    live, body = snapshot.release, release_object(snapshot, choice)
    ref = ObjectRef(
        api_version=names.FLUX_API_VERSION,
        kind=names.RELEASE_KIND,
        namespace=body["metadata"]["namespace"],
        name=body["metadata"]["name"],
        uid="" if live is None else live["metadata"].get("uid", ""),
    )
    facts = facts_of(snapshot, **{"class": choice.name, "previous": choice.previous[0] if choice.previous else ""})
    if live is None:
        # One that somebody else has made a moment ago, which we have not heard of, is not taken from them.
        write = Write(body=body, is_first=True)
        draft.act(Verb.APPLY, ref, Reason.RELEASE_APPLIED, facts, write, diff=_diff(None, body))
        return
    cleared, first = live, ""
    if foreign := _foreign_values(live, body):
        write = Write(body=foreign)
        cleared = merge_patch(live, foreign)
        changed = _diff(live, cleared)
        first = draft.act(Verb.PATCH, ref, Reason.VALUES_CLEARED, facts, write, diff=changed, part="values")
    after = _applied(cleared, body)
    if after is not cleared:
        changed = _diff(cleared, after)
        draft.act(Verb.APPLY, ref, _reason(live, after), facts, Write(body=body), diff=changed, after=(first,))


def _diff(live: Object | None, after: Object) -> tuple[FieldChange, ...]:
    return diff(None if live is None else _concealed(live), _concealed(after))


def _concealed(release: Object) -> Object:
    """With hashes in place of the texts that a user has put into the values; what the class says stays."""
    spec = release["spec"]
    values = {
        name: value if name in _PLACEMENT else conceal_texts(value)
        for name, value in (spec.get("values") or {}).items()
    }
    return {**release, "spec": {**spec, "values": values}}


def _reason(live: Object, after: Object) -> Reason:
    before, then = (each["metadata"].get("labels") or {} for each in (live, after))
    if before.get(names.AFFINITY_CLASS) != then.get(names.AFFINITY_CLASS):
        return Reason.CLASS_CHANGED
    is_settled = names.PREVIOUS_CLASS in before and names.PREVIOUS_CLASS not in then
    return Reason.CLASS_SETTLED if is_settled else Reason.RELEASE_APPLIED


def _applied(live: Object, body: Object) -> Object:
    """The release as an apply leaves it; the very same where that changes nothing."""
    after = outcome(live, body, names.MANAGER)
    # A list in values is one value to the server, whatever its items are called.
    exact = {field: body["spec"][field] for field in _EXACT}
    after = {**after, "spec": {**after["spec"], **exact}}
    return live if is_same(without_nulls(after), without_nulls(live)) else after


def _foreign_values(live: Object, body: Object) -> Object:
    """A patch that takes away values which others have written: an apply gives up only what is ours."""
    left = (relinquished(live, body, names.MANAGER).get("spec") or {}).get("values")
    extra = _extra(left, body["spec"]["values"])
    return {"spec": {"values": extra}} if extra else {}


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
