"""Find the users of an AffinityClass: tenants, applications and HelmReleases that name it."""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.caches.applications import application_kinds, applications_with_class
from nodeyard.capabilities.affinity.caches.owners import metadata_of
from nodeyard.capabilities.affinity.planning.lineage import application_of
from nodeyard.capabilities.affinity.types import ClassUser
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import View


def users(view: View, name: str) -> Sequence[ClassUser]:
    """Return the users sorted by kind, namespace and name, including those being deleted."""
    tenants = view.indexed(names.TENANT_KIND, names.BY_CLASS, name)
    found = {(names.TENANT_KIND, each.namespace, each.name) for each in tenants}
    found.update(_release_user(release) for release in view.indexed(names.RELEASE_KIND, names.BY_CLASS, name))
    for kind in application_kinds(view):
        for application in applications_with_class(view, kind, name):
            metadata = application["metadata"]
            found.add((kind, metadata.get("namespace", ""), metadata["name"]))
    return [ClassUser(kind=kind, namespace=namespace, name=user) for kind, namespace, user in sorted(found)]


def _release_user(release: object) -> tuple[str, str, str]:
    """Return the application of a HelmRelease, or the HelmRelease itself if it is of none."""
    metadata = metadata_of(release)
    ref = ObjectRef(api_version=names.FLUX_API_VERSION, kind=names.RELEASE_KIND, name=metadata.name)
    application = application_of(ref, metadata.labels)
    if application is None:
        return names.RELEASE_KIND, metadata.namespace, metadata.name
    return application.kind, metadata.namespace, application.name
