"""The bootstrap policy: default roles and bindings, and those of the users file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from typing import Protocol

import msgspec
import yaml

from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.rbac.names import GROUP
from nodeyard.apiserver.user_file import KnownUser
from nodeyard.apiserver.users import parse_service_account
from nodeyard.kube.json import Json, Object

_DEFAULTS: Object = {
    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
}


class Caller(Protocol):
    """Parts of the server that bootstrapping needs."""

    async def call(self, method: str, url: str, body: Json = None) -> Json: ...


async def bootstrap(server: Caller, users: Iterable[KnownUser] = ()) -> None:
    """Create missing roles and bindings; existing ones are not changed. The namespaces must exist."""
    for manifest in default_policy():
        await _create(server, _url(manifest), manifest)
    for user in users:
        account = parse_service_account(user.name)
        if account:
            await _create(server, "/api/v1/namespaces", {"metadata": {"name": account.namespace}})
            url = f"/api/v1/namespaces/{account.namespace}/serviceaccounts"
            await _create(server, url, {"metadata": {"name": account.name}})
        for manifest in user_policy(user):
            await _create(server, _url(manifest), manifest)


@cache
def default_policy() -> tuple[Object, ...]:
    """Return the manifests: ClusterRoles first, then ClusterRoleBindings."""
    text = resources.files(__package__).joinpath("policy.yaml").read_text()
    loaded = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return (
        *(_role(name, content) for name, content in loaded["clusterRoles"].items()),
        *(_binding(name, name, subjects, _DEFAULTS) for name, subjects in loaded["clusterRoleBindings"].items()),
    )


def user_policy(user: KnownUser) -> Iterator[Object]:
    """Yield a ClusterRole with the rules of a user of the users file, and its binding."""
    if not user.rules:
        return
    name = f"nodeyard:user:{user.name}"
    yield _manifest("ClusterRole", {"name": name}, rules=msgspec.to_builtins(user.rules))
    yield _binding(name, name, [{"kind": "User", "name": user.name}], {})


def _role(name: str, content: Object) -> Object:
    labels = {**_DEFAULTS["labels"], **content.get("labels", {})}
    metadata = {"name": name, **_DEFAULTS, "labels": labels}
    if "aggregates" in content:
        selectors = [{"matchLabels": content["aggregates"]}]
        return _manifest("ClusterRole", metadata, aggregationRule={"clusterRoleSelectors": selectors}, rules=None)
    return _manifest("ClusterRole", metadata, rules=content["rules"])


def _binding(name: str, role: str, subjects: list[Object], metadata: Object) -> Object:
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    named = [{"apiGroup": GROUP, **subject} for subject in subjects]
    return _manifest("ClusterRoleBinding", {"name": name, **metadata}, roleRef=reference, subjects=named)


def _manifest(kind: str, metadata: Object, **content: Json) -> Object:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, **content}


def _url(manifest: Object) -> str:
    return f"/apis/{GROUP}/v1/{manifest['kind'].lower()}s"


async def _create(server: Caller, url: str, manifest: Object) -> None:
    try:
        await server.call("POST", url, manifest)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
