"""A tiny capability with kinds that users declare.

A BadgeService names a kind, and the operator annotates every object of it with `badges.test/badge`. The status has the
number of annotated objects and the error, if any.
"""

from dataclasses import dataclass

from tests.builders.plans import message

from nodeyard.apply.outcome import Result
from nodeyard.client.resources import Resource, of_kind
from nodeyard.kube.objects import NullableStruct, ObjectMeta, PlainStruct
from nodeyard.plan.model import Action, Decision, FieldChange, ObjectRef, Plan, Planned, Verb, Write
from nodeyard.runtime.capability import Capability, Dynamic, Explain, Kind, Report, Roots, Rule, StatusWrite, Watch

GROUP = "badges.test"
API_VERSION = "badges.test/v1"
BADGE = "badges.test/badge"


class ServiceSpec(PlainStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    badge: str = ""


class ServiceStatus(NullableStruct, frozen=True):
    badged: int | None = None
    refused: str | None = None
    watch_error: str | None = None
    served: str | None = None


class BadgeService(NullableStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


SERVICES = Resource(GROUP, "v1", "badgeservices", "BadgeService", False, BadgeService)


@dataclass(frozen=True)
class Snapshot:
    service: BadgeService
    objects: tuple
    is_served: bool
    watch_error: str


def shown_as(service):
    """Return the name of a service's kind in the view."""
    group = service.spec.api_version.rpartition("/")[0]
    return f"{service.spec.kind}.{group or 'core'}"


def declared(view):
    return [_watch(service) for service in view.all("BadgeService")]


def _watch(service):
    name = service.metadata.name
    return Watch(
        of_kind(service.spec.api_version, service.spec.kind),
        keys=lambda old, new: () if old and new and _badge(old) == _badge(new) else (name,),
        indexes={"badge": lambda obj: [_badge(obj)]},
    )


def _badge(obj):
    return (obj["metadata"].get("annotations") or {}).get(BADGE, "")


def collect(view, key, _now):
    service = view.get("BadgeService", key)
    if service is None:
        return None
    kind = shown_as(service)
    group = service.spec.api_version.rpartition("/")[0]
    is_served = bool(view.versions(group, service.spec.kind))
    return Snapshot(service, tuple(view.all(kind)), is_served, view.watch_error(kind))


def plan(snapshot, _now, explain):
    service = snapshot.service
    todo = [obj for obj in snapshot.objects if _badge(obj) != service.spec.badge]
    actions, writes = [], {}
    for obj in todo:
        action = _action(obj, service)
        actions.append(action)
        writes[action.id] = Write(body={"metadata": {"annotations": {BADGE: service.spec.badge}}})
    decisions = tuple(Decision.of(each, message("Badged", by=service.metadata.name)) for each in explain)
    return Planned(
        plan=Plan(capability="badges", key=service.metadata.name, actions=tuple(actions), decisions=decisions),
        writes=writes,
        is_final=True,
    )


def _action(obj, service):
    metadata, spec = obj["metadata"], service.spec
    name, namespace = metadata["name"], metadata.get("namespace", "")
    return Action(
        id=f"{namespace}/{name}",
        verb=Verb.PATCH,
        object=ObjectRef(
            api_version=spec.api_version, kind=spec.kind, name=name, namespace=namespace, uid=metadata["uid"]
        ),
        reason="Badged",
        facts=message("Badged"),
        diff=(FieldChange(path=f"metadata.annotations[{BADGE}]", from_=_badge(obj) or None, to=spec.badge),),
    )


def report(snapshot, _plan, outcome, _now):
    done = sum(each.result is Result.DONE for each in outcome.results)
    failed = [each.message for each in outcome.results if each.result is not Result.DONE]
    found = {
        "badged": done + sum(_badge(obj) == snapshot.service.spec.badge for obj in snapshot.objects),
        "served": "yes" if snapshot.is_served else "no",
        "trouble": snapshot.watch_error,
        "refused": failed[0] if failed else "",
    }
    return Report([StatusWrite(object=_ref(snapshot.service), status=found)])


def _ref(service):
    metadata = service.metadata
    return ObjectRef(api_version=API_VERSION, kind="BadgeService", name=metadata.name, uid=metadata.uid)


def _service_keys(old, new):
    is_same = old is not None and new is not None and old.metadata.generation == new.metadata.generation
    return () if is_same else ((new or old).metadata.name,)


def definition():
    text = {"type": "string"}
    spec = {"apiVersion": text, "kind": text, "badge": text}
    found = {"badged": {"type": "integer"}, "served": text, "trouble": text, "refused": text}
    return custom("badgeservices.badges.test", "BadgeService", "Cluster", spec=spec, status=found)


def custom(name, kind, scope="Namespaced", **parts):
    """Build a CRD; parts without a schema of their own take any value."""
    plural, _, group = name.partition(".")
    open_part = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {part: {"type": "object", "properties": each} for part, each in parts.items()}
    schema = {"type": "object", "properties": {"spec": open_part, "status": open_part, **properties}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


BADGES = Capability(
    name="badges",
    kinds=(Kind(SERVICES, definition),),
    watches=(Watch(SERVICES, _service_keys),),
    all_keys=lambda view: [each.metadata.name for each in view.all("BadgeService")],
    collect=collect,
    plan=plan,
    report=report,
    rbac=(
        Rule(GROUP, ("badgeservices",), ("get", "list", "watch")),
        Rule(GROUP, ("badgeservices/status",), ("patch",)),
    ),
    roots=Roots(lambda view, key: [each for each in [view.get("BadgeService", key)] if each is not None]),
    explain=Explain(
        lambda view, ref: [each.metadata.name for each in view.all("BadgeService") if each.spec.kind == ref.kind]
    ),
    dynamic=Dynamic(declared),
)


def service(name, kind, badge="gold", api_version="badges.test/v1"):
    return {
        "apiVersion": API_VERSION,
        "kind": "BadgeService",
        "metadata": {"name": name},
        "spec": {"apiVersion": api_version, "kind": kind, "badge": badge},
    }
