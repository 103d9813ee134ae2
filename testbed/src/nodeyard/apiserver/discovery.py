"""Discovery: the groups, versions and resources that are served, in the plain and in the aggregated form."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.resources import GroupVersionKind, Resource, Subresource
from nodeyard.apiserver.responses import encode
from nodeyard.kube.json import Object

_OBJECT_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


VIRTUAL: tuple[tuple[str, str, str, str, bool], ...] = (
    ("", "v1", "bindings", "Binding", True),
    ("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False),
    ("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False),
    ("authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", True),
    ("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False),
    ("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False),
    ("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False),
)
"""Resources that are created and never stored: group, version, plural, kind, whether namespaced."""


def _versions(registry: Registry) -> dict[str, list[str]]:
    """Return the served versions of every group, the preferred one first."""
    found: dict[str, set[str]] = {group: {version} for group, version, *_ in VIRTUAL}
    for resource in registry:
        served = {name for name, version in resource.versions.items() if version.served}
        if served:
            found.setdefault(resource.group, set()).update(served)
    return {group: sorted(versions, key=priority) for group, versions in sorted(found.items())}


def priority(version: str) -> tuple[int, int, int, str]:
    """The sort key of Kubernetes' version priority: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name."""
    number, stage, revision = _parts(version)
    if number is None:
        return (3, 0, 0, version)
    rank = {"": 0, "beta": 1, "alpha": 2}[stage]
    return (rank, -number, -revision, version)


def _parts(version: str) -> tuple[int | None, str, int]:
    if not version.startswith("v"):
        return None, "", 0
    for stage in ("alpha", "beta"):
        major, found, minor = version[1:].partition(stage)
        if found and major.isdigit() and minor.isdigit():
            return int(major), stage, int(minor)
    return (int(version[1:]), "", 0) if version[1:].isdigit() else (None, "", 0)


def api_versions(address: str) -> Object:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(registry: Registry) -> Object:
    groups = [_group(name, versions) for name, versions in _versions(registry).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(registry: Registry, name: str) -> Object | None:
    versions = _versions(registry).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions and name else None


def _group(name: str, versions: list[str]) -> Object:
    shown = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": shown, "preferredVersion": shown[0]}


def resource_list(registry: Registry, group_name: str, version: str) -> Object | None:
    """Return the resources of a group version, or None if it is not served."""
    if version not in _versions(registry).get(group_name, ()):
        return None
    shown: list[Object] = []
    for resource in _served(registry, group_name, version):
        shown.append(_plain(resource))
        for subresource in resource.subresources(version):
            shown.append(_plain_subresource(resource, version, subresource))
    for virtual_group, virtual_version, plural, kind_name, namespaced in VIRTUAL:
        if (virtual_group, virtual_version) == (group_name, version):
            shown.append(
                {
                    "name": plural,
                    "singularName": kind_name.lower(),
                    "namespaced": namespaced,
                    "kind": kind_name,
                    "verbs": ["create"],
                }
            )
    group_version = f"{group_name}/{version}" if group_name else version
    ordered = sorted(shown, key=lambda entry: str(entry["name"]))
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": ordered}


def _served(resources: Iterable[Resource], group_name: str, version: str) -> Iterable[Resource]:
    for resource in resources:
        typed = resource.versions.get(version)
        if resource.group == group_name and typed is not None and typed.served:
            yield resource


def _verbs(resource: Resource) -> list[str]:
    return [verb for verb in _OBJECT_VERBS if verb != "deletecollection" or resource.strategy.allows_delete_collection]


def _plain(resource: Resource) -> Object:
    shown: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        shown["shortNames"] = list(resource.short_names)
    if resource.categories:
        shown["categories"] = list(resource.categories)
    return shown


def _plain_subresource(resource: Resource, version: str, subresource: Subresource) -> Object:
    name, kind, verbs = subresource
    shown: Object = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
    if (kind.group, kind.version) != (resource.group, version):
        shown |= {"group": kind.group, "version": kind.version}
    return shown | {"kind": kind.kind, "verbs": verbs}


def aggregated(registry: Registry, *, core: bool) -> tuple[bytes, str]:
    """APIGroupDiscoveryList of /api (core) or /apis, and its ETag."""
    by_group: dict[str, list[Resource]] = {}
    for resource in registry:
        by_group.setdefault(resource.group, []).append(resource)
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [_aggregated(by_group.get(name, ()), name, version) for version in versions],
        }
        for name, versions in _versions(registry).items()
        if core == (name == "")
    ]
    shown = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }
    body = encode(shown)
    return body, f'"{hashlib.sha512(body).hexdigest().upper()}"'


def _aggregated(resources: Iterable[Resource], group_name: str, version: str) -> Object:
    shown: list[Object] = []
    for resource in _served(resources, group_name, version):
        shown.append(_aggregated_resource(resource, version))
    for virtual_group, virtual_version, plural, kind_name, namespaced in VIRTUAL:
        if (virtual_group, virtual_version) == (group_name, version):
            shown.append(
                {
                    "resource": plural,
                    "responseKind": {"group": "", "version": "", "kind": kind_name},
                    "scope": "Namespaced" if namespaced else "Cluster",
                    "singularResource": kind_name.lower(),
                    "verbs": ["create"],
                }
            )
    ordered = sorted(shown, key=lambda entry: str(entry["resource"]))
    return {"version": version, "resources": ordered, "freshness": "Current"}


def _aggregated_resource(resource: Resource, version: str) -> Object:
    shown: Object = {
        "resource": resource.plural,
        "responseKind": _kind(resource.gvk(version), resource.is_custom),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        shown["shortNames"] = list(resource.short_names)
    if resource.categories:
        shown["categories"] = list(resource.categories)
    nested = [
        {"subresource": name, "responseKind": _kind(kind, True), "verbs": verbs}
        for name, kind, verbs in resource.subresources(version)
    ]
    return shown | {"subresources": nested} if nested else shown


def _kind(gvk: GroupVersionKind, is_whole: bool) -> Object:
    group_name, version = (gvk.group, gvk.version) if is_whole else ("", "")
    return {"group": group_name, "version": version, "kind": gvk.kind}
