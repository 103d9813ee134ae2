"""Find the users of an AffinityClass: tenants, applications and HelmReleases that name it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.caches.owners import metadata_of
from nodeyard.capabilities.affinity.planning.lineage import application_of
from nodeyard.capabilities.affinity.types import ApplicationDefinition, ClassUser
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import View


def users(view: View, name: str) -> Sequence[ClassUser]:
    """Return the users sorted by kind, namespace and name, including those being deleted."""
    found = {*_tenants(view, name), *_releases(view, name), *_applications(view, name)}
    return [ClassUser(kind=kind, namespace=namespace, name=user) for kind, namespace, user in sorted(found)]


_User = tuple[str, str, str]


def _tenants(view: View, name: str) -> Iterator[_User]:
    for tenant in view.indexed(names.TENANT_KIND, names.BY_CLASS, name):
        yield names.TENANT_KIND, tenant.namespace, tenant.name


def _releases(view: View, name: str) -> Iterator[_User]:
    for release in view.indexed(names.RELEASE_KIND, names.BY_CLASS, name):
        metadata = metadata_of(release)
        ref = ObjectRef(api_version=names.FLUX_API_VERSION, kind=names.RELEASE_KIND, name=metadata.name)
        application = application_of(ref, metadata.labels)
        if application is None:
            yield names.RELEASE_KIND, metadata.namespace, metadata.name
        else:
            yield application.kind, metadata.namespace, application.name


def _applications(view: View, name: str) -> Iterator[_User]:
    definitions: Sequence[ApplicationDefinition] = view.all(names.DEFINITION_KIND)
    for kind in sorted({each.kind for each in definitions if each.kind}):
        for application in _naming(view, kind, name):
            metadata = application["metadata"]
            yield kind, metadata.get("namespace", ""), metadata["name"]


def _naming(view: View, kind: str, name: str) -> Sequence[Object]:
    try:
        return view.indexed(f"{kind}.{names.APPS_GROUP}", names.BY_CLASS, name)
    except KeyError:
        # The kind was declared a moment ago and is not watched yet.
        return ()
