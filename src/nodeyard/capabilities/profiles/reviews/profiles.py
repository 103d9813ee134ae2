"""Review profiles: deny configuration that does not parse, and the deletion of a profile in use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.collect.rollouts import rollout_count
from nodeyard.capabilities.profiles.messages.base import count_nodes
from nodeyard.capabilities.profiles.messages.faults import SecretsNotGranted
from nodeyard.capabilities.profiles.planning.configuration.objects import SECRET
from nodeyard.capabilities.profiles.planning.configuration.validation import validate_profile
from nodeyard.capabilities.profiles.planning.resolution import resolve
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Profile, Service
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, OpenStackDataPlaneRole, Source, annotation_of
from nodeyard.capabilities.profiles.watched import load_registry
from nodeyard.client.resources import SECRETS, view_kind
from nodeyard.kube.json import Object, json_equal
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse, allowed, denied, ratchet
from nodeyard.watch.reflector import FORBIDDEN

_NAMESPACE_CONTROLLER: Final = "system:serviceaccount:kube-system:namespace-controller"
"""User that deletes the content of a namespace, in any order."""


@dataclass(frozen=True)
class _Target:
    """Profile of a request."""

    service: Service
    namespace: str
    name: str
    """Name, or generateName if the API server has not set the name yet."""

    def __str__(self) -> str:
        return f"{self.service.profile_kind} {self.name}"


def review_profile(review: AdmissionRequest, view: View) -> AdmissionResponse:
    """Review a profile for every service of its kind; the first denial wins."""
    kind = (review.kind.group, review.kind.kind)
    responses = [_review(each, review, view) for each in load_registry(view).services if _profiles_of(each) == kind]
    refusals = (each for each in responses if not each.is_allowed)
    return next(refusals, allowed(*(warning for each in responses for warning in each.warnings)))


def _profiles_of(service: Service) -> tuple[str, str]:
    return service.profile_api_version.rpartition("/")[0], service.profile_kind


def _review(service: Service, review: AdmissionRequest, view: View) -> AdmissionResponse:
    metadata = review.subject.get("metadata", {})
    name = review.name or metadata.get("name") or metadata.get("generateName", "")
    target = _Target(service, review.namespace, name)
    if review.operation == "DELETE":
        is_whole = review.user.username == _NAMESPACE_CONTROLLER
        return allowed() if is_whole else _review_removal(target, review.old_object, view)
    if "deletionTimestamp" in metadata:
        return allowed()
    return _review_content(target, review.object or {}, review.old_object, view)


def _review_content(target: _Target, new: Object, old: Object | None, view: View) -> AdmissionResponse:
    field = target.service.config_field
    config = watched.spec_string(new, field)
    result = validate_profile(target.service, target.name, config)
    secret_faults = list(_secret_faults(target, new, view))
    if old is None:
        return ratchet([*result.faults, *secret_faults], [], result.warnings)
    changes = list(_selection_changes(target, old, new, view))
    # Ratcheting: a fault that existed before is a warning, not a denial.
    known = secret_faults if watched.parse_profile(target.service, old).render_as == SECRET else []
    faults = [] if known else secret_faults
    if json_equal(config, watched.spec_string(old, field)):
        return ratchet(faults, [*result.faults, *known], changes)
    nodes = _nodes_using(target, old, view)
    reconfigured = (
        [f"This change to {target} reconfigures {target.service.name} on {count_nodes(nodes)}"] if nodes else []
    )
    return ratchet([*result.faults, *faults], known, [*result.warnings, *reconfigured, *changes])


def _secret_faults(target: _Target, profile: Object, view: View) -> Iterator[str]:
    """Return the fault of renderAs: Secret without a grant. Unknown, and not a fault, in namespaces without nodes."""
    if watched.parse_profile(target.service, profile).render_as != SECRET or target.namespace not in watched.namespaces(
        view
    ):
        return
    kind = watched.configuration_kind(SECRETS, target.namespace)
    if not view.is_synced(kind) and FORBIDDEN in view.watch_error(kind):
        service, namespace = target.service, target.namespace
        yield SecretsNotGranted(
            service=service.name, kind=service.profile_kind, profile=target.name, namespace=namespace
        ).text()


def _selection_changes(target: _Target, old: Object, new: Object, view: View) -> Iterator[str]:
    """Return warnings with the nodes that a changed nodeSelector or priority adds or removes."""
    stored, changed = (watched.parse_profile(target.service, each) for each in (old, new))
    if (stored.node_selector, stored.priority) == (changed.node_selector, changed.priority):
        return
    before, after = ({node.name for node in _selected(target, each, view)} for each in (old, new))
    if before - after:
        yield f"With this change {target} no longer selects {count_nodes(sorted(before - after))}"
    if after - before:
        yield f"With this change {target} selects {count_nodes(sorted(after - before))}"


# deletion


def _review_removal(target: _Target, old: Object | None, view: View) -> AdmissionResponse:
    if nodes := _nodes_using(target, old, view):
        return denied(
            f"{target} is in use by {count_nodes(nodes)}: set {target.service.annotation_key} on them or their role to "
            "another profile, or to an empty value for none, before you delete it"
        )
    if nodes := _deployed(target, view):
        kind = target.service.object_kind
        return denied(
            f"{target} is still deployed in the {kind} of {count_nodes(nodes)}: delete it when they have another "
            "profile"
        )
    return allowed(*_waiting_roles(target, view))


def _waiting_roles(target: _Target, view: View) -> Iterator[str]:
    """Return warnings about roles without nodes that name the profile; they do not block its deletion."""
    choice = f"{target.namespace}/{target.service.annotation_key}={target.name}"
    for name in sorted(role.metadata.name for role in view.indexed(names.ROLE_KIND, names.BY_ANNOTATION, choice)):
        yield f"{names.ROLE_KIND} {name} still names {target}: nodes that get this role will report ProfileNotFound"


# users of a profile


def _nodes_using(target: _Target, profile: Object | None, view: View) -> list[str]:
    """Return the nodes of a profile: by their annotation, by their role, or by its nodeSelector."""
    chosen = (
        view.get(names.NODE_KIND, name, target.namespace)
        for name in watched.list_choosing_nodes(view, target.service, target.namespace, target.name)
    )
    selected = _selected(target, profile, view) if profile is not None else ()
    return sorted({node.name for node in (*chosen, *selected) if node is not None and not node.is_deleting})


def _deployed(target: _Target, view: View) -> list[str]:
    """Return the nodes that still have the profile deployed, although they do not choose it any more."""
    service = target.service
    kind = view_kind(service.object_api_version, service.object_kind)
    if not service.makes_object or not watched.is_synced(view, kind):
        return []
    if not rollout_count(view, service, target.namespace, target.name).total:
        return []
    having = watched.by_profile(service.profile_field)
    found = (each["metadata"] for each in view.all(kind) if f"{target.namespace}/{target.name}" in having(each))
    return sorted(each["name"] for each in found if "deletionTimestamp" not in each)


def _selected(target: _Target, profile: Object, view: View) -> Iterator[OpenStackDataPlaneNode]:
    """Iterate over nodes that this version of the profile selects, instead of the stored one."""
    service = target.service
    if not any(watched.selecting(profile)):
        return
    kind = view_kind(service.profile_api_version, service.profile_kind)
    selecting = view.indexed(kind, watched.SELECTING, target.namespace) if watched.is_synced(view, kind) else ()
    profiles = {each["metadata"]["name"]: watched.parse_profile(service, each) for each in selecting}
    profiles[target.name] = watched.parse_profile(service, profile)
    for node in view.all(names.NODE_KIND):
        if node.metadata.namespace == target.namespace and _is_selected(target, node, profiles, view):
            yield node


def _is_selected(target: _Target, node: OpenStackDataPlaneNode, profiles: dict[str, Profile], view: View) -> bool:
    """Check if no annotation chooses for the node and this profile wins by priority."""
    service = target.service
    role: OpenStackDataPlaneRole | None = (
        view.get(names.ROLE_KIND, node.wanted.role, target.namespace) if node.wanted.role else None
    )
    if any(annotation_of(each, service.annotation_key) is not None for each in (node, role)):
        return False
    found = resolve(NodeSnapshot(node, role, (service,), profiles={service.name: profiles}))[service.name]
    return (found.source, found.value) == (Source.SELECTOR, target.name)
