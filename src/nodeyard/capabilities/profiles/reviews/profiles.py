"""Profiles: configuration that no service could read is not stored, and a profile that nodes have is not deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.collecting import known
from nodeyard.capabilities.profiles.configuration.judgement import of_profile
from nodeyard.capabilities.profiles.planning.resolution import resolve
from nodeyard.capabilities.profiles.reviews.verdicts import counted
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Profile, Service
from nodeyard.capabilities.profiles.standings import standing_of
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, OpenStackDataPlaneRole, Source, annotation_of
from nodeyard.capabilities.profiles.users import choosers
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import View
from nodeyard.runtime.judging import judged
from nodeyard.runtime.webhooks import Review, Verdict, allowed, denied

_NAMESPACE_CONTROLLER: Final = "system:serviceaccount:kube-system:namespace-controller"
"""Deletes everything in a namespace that goes, in an order of its own."""


@dataclass(frozen=True)
class _Asked:
    """The profile that a request is about."""

    service: Service
    namespace: str
    name: str
    """What its server-made name begins with, where it has none yet."""

    def __str__(self) -> str:
        return f"{self.service.profile_kind} {self.name}"


def review_profile(review: Review, view: View) -> Verdict:
    """By every service that has profiles of this kind: the first that refuses does."""
    kind = (review.kind.group, review.kind.kind)
    verdicts = [_review(each, review, view) for each in known(view).services if _profiles_of(each) == kind]
    refusals = (each for each in verdicts if not each.is_allowed)
    return next(refusals, allowed(*(warning for each in verdicts for warning in each.warnings)))


def _profiles_of(service: Service) -> tuple[str, str]:
    return service.profile_api_version.rpartition("/")[0], service.profile_kind


def _review(service: Service, review: Review, view: View) -> Verdict:
    metadata = review.subject.get("metadata", {})
    name = review.name or metadata.get("name") or metadata.get("generateName", "")
    asked = _Asked(service, review.namespace, name)
    if review.operation == "DELETE":
        is_whole = review.user.username == _NAMESPACE_CONTROLLER
        return allowed() if is_whole else _review_removal(asked, review.old_object, view)
    if "deletionTimestamp" in metadata:
        return allowed()
    return _review_content(asked, review.object or {}, review.old_object, view)


def _review_content(asked: _Asked, new: Object, old: Object | None, view: View) -> Verdict:
    field = asked.service.config_field
    config = watched.named(new, field)
    judgement = of_profile(asked.service, asked.name, config)
    if old is None:
        return judged(judgement.faults, [], judgement.warnings)
    moved = list(_moved(asked, old, new, view))
    if config == watched.named(old, field):
        return judged([], judgement.faults, moved)
    nodes = _users(asked, old, view)
    told = [f"this change of {asked} reconfigures {asked.service.name} on {counted(nodes)}"] if nodes else []
    return judged(judgement.faults, [], [*judgement.warnings, *told, *moved])


def _moved(asked: _Asked, old: Object, new: Object, view: View) -> Iterator[str]:
    """For which nodes another selector or priority decides otherwise."""
    was, will = (watched.seen(asked.service, each) for each in (old, new))
    if (was.node_selector, was.priority) == (will.node_selector, will.priority):
        return
    before, after = ({node.name for node in _selected(asked, each, view)} for each in (old, new))
    if before - after:
        yield f"by this change {asked} is not chosen any more for {counted(sorted(before - after))}"
    if after - before:
        yield f"by this change {asked} is chosen for {counted(sorted(after - before))}"


# deletion


def _review_removal(asked: _Asked, old: Object | None, view: View) -> Verdict:
    if nodes := _users(asked, old, view):
        return denied(
            f"{asked} is in use by {counted(nodes)}: choose another by {asked.service.annotation_key} on them or their "
            "role, or empty it to have none, then delete it"
        )
    if nodes := _deployed(asked, view):
        kind = asked.service.object_kind
        return denied(f"{asked} is still what the {kind} of {counted(nodes)} has: delete it when they have another")
    return allowed(*_waiting_roles(asked, view))


def _waiting_roles(asked: _Asked, view: View) -> Iterator[str]:
    """Roles without nodes do not keep it."""
    choice = f"{asked.namespace}/{asked.service.annotation_key}={asked.name}"
    for name in sorted(role.metadata.name for role in view.indexed(names.ROLE_KIND, names.BY_ANNOTATION, choice)):
        yield f"{names.ROLE_KIND} {name} still chooses {asked}: a node that follows it will miss it"


# who has it


def _users(asked: _Asked, profile: Object | None, view: View) -> list[str]:
    """The nodes that have a profile: by themselves, by their role, or by its selector."""
    chosen = (
        view.get(names.NODE_KIND, name, asked.namespace)
        for name in choosers(view, asked.service, asked.namespace, asked.name)
    )
    selected = _selected(asked, profile, view) if profile is not None else ()
    return sorted({node.name for node in (*chosen, *selected) if node is not None and not node.is_deleting})


def _deployed(asked: _Asked, view: View) -> list[str]:
    """The nodes whose service has the profile, although another is chosen for them by now, or none."""
    service = asked.service
    kind = watched.viewed(service.object_api_version, service.object_kind)
    if not service.makes_object or not watched.is_seen(view, kind):
        return []
    if not standing_of(view, service, asked.namespace, asked.name).total:
        return []
    having = watched.by_profile(service.profile_field)
    found = (each["metadata"] for each in view.all(kind) if f"{asked.namespace}/{asked.name}" in having(each))
    return sorted(each["name"] for each in found if "deletionTimestamp" not in each)


def _selected(asked: _Asked, profile: Object, view: View) -> Iterator[OpenStackDataPlaneNode]:
    """By the profile as it is here, whichever is stored."""
    service = asked.service
    if not any(watched.selecting(profile)):
        return
    kind = watched.viewed(service.profile_api_version, service.profile_kind)
    selecting = view.indexed(kind, watched.SELECTING, asked.namespace) if watched.is_seen(view, kind) else ()
    profiles = {each["metadata"]["name"]: watched.seen(service, each) for each in selecting}
    profiles[asked.name] = watched.seen(service, profile)
    for node in view.all(names.NODE_KIND):
        if node.metadata.namespace == asked.namespace and _is_selected(asked, node, profiles, view):
            yield node


def _is_selected(asked: _Asked, node: OpenStackDataPlaneNode, profiles: dict[str, Profile], view: View) -> bool:
    """Whether nobody chooses for the node, and this profile selects it by the highest priority."""
    service = asked.service
    role: OpenStackDataPlaneRole | None = (
        view.get(names.ROLE_KIND, node.wanted.role, asked.namespace) if node.wanted.role else None
    )
    if any(annotation_of(each, service.annotation_key) is not None for each in (node, role)):
        return False
    found = resolve(NodeSnapshot(node, role, (service,), profiles={service.name: profiles}))[service.name]
    return (found.source, found.value) == (Source.SELECTOR, asked.name)
