"""Collect an application with its definition, policy, classes and release."""

from __future__ import annotations

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collect.definitions import application_kinds, find_application, get_all
from nodeyard.capabilities.affinity.collect.owners import is_served_elsewhere
from nodeyard.capabilities.affinity.collect.placement_context import PlacementContext, policy_of
from nodeyard.capabilities.affinity.reviews.pod_webhooks import is_webhook_registered
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot, release_name
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import View


def collect_application(view: View, kind: str, namespace: str, name: str) -> ApplicationSnapshot | None:
    definition = application_kinds(view).get(kind)
    if definition is None or is_served_elsewhere(view):
        return None
    application = find_application(view, kind, namespace, name)
    if application is None:
        return None
    release: Object | None = view.get(names.RELEASE_KIND, release_name(definition, name), namespace)
    policy = policy_of(view, namespace)
    wanted = {policy.default, *watched.application_classes(application)}
    if release is not None:
        wanted |= set(watched.release_classes(release))
    return ApplicationSnapshot(
        application=application,
        definition=definition,
        policy=policy,
        classes=get_all(view, names.CLASS_KIND, ((each, "") for each in wanted if each)),
        release=release,
        is_release_served=names.FLUX_VERSION in view.versions(names.FLUX_GROUP, names.RELEASE_KIND),
        other_release="" if release is not None else _other_release(view, kind, namespace, name),
        namespace_labels=PlacementContext(view, namespace).namespace_labels(),
        is_webhook_registered=is_webhook_registered(view.get(watched.REGISTRATIONS.kind, watched.REGISTRATION)),
    )


def _other_release(view: View, kind: str, namespace: str, name: str) -> str:
    """Return the name of its HelmRelease from before the prefix of its definition changed."""
    releases = view.indexed(names.RELEASE_KIND, names.BY_APPLICATION, f"{kind}/{namespace}/{name}")
    found = (str(release["metadata"]["name"]) for release in releases)
    return next((each for each in found if each.endswith(name)), "")
