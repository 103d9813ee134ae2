"""Reads the kubeconfig of a leaf, from its Secret or from the Cluster, and checks that it can be used.

Parsing is restricted, as it is when the leaf is connected: a kubeconfig can neither run a program, nor read a local
file, nor use a proxy. Error messages never quote its content.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from functools import lru_cache
from typing import Final

from nodeyard.capabilities.clustertree import names, watched
from nodeyard.capabilities.clustertree.snapshot import Kubeconfig
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.client.errors import ConfigError
from nodeyard.client.kubeconfig import parse_kubeconfig
from nodeyard.kube.objects import Secret
from nodeyard.runtime.capability import View, WatchNotSynced
from nodeyard.runtime.rbac import grant_remedy
from nodeyard.watch.reflector import FORBIDDEN

_REMEMBERED: Final = 512


def kubeconfig_of(view: View, cluster: Cluster) -> Kubeconfig:
    """Return the kubeconfig of the Cluster. Raises WatchNotSynced until the Secrets of its namespace are listed."""
    place = watched.secret_of(cluster)
    if place is None:
        return _parse(cluster.spec.kubeconfig, "spec.kubeconfig") if cluster.spec.kubeconfig else Kubeconfig()
    namespace, name = place
    where = f"Secret {namespace}/{name}"
    kind = watched.secrets_in(namespace)
    if not _can_list(view, kind):
        why = f"no permission to list Secrets in namespace {namespace}: {_remedy(namespace)}"
        return Kubeconfig(is_given=True, error=f"{where} was not read: {why}", is_missing=True)
    secret: Secret | None = view.get(kind, name, namespace)
    if secret is None:
        error = f"{where} does not exist, or lacks the label {names.LEAF_KUBECONFIG}={names.TRUE}"
        return Kubeconfig(is_given=True, error=error, is_missing=True)
    ref = cluster.spec.kubeconfig_secret_ref
    key = (ref.key if ref is not None else "") or names.KUBECONFIG_KEY
    if key not in secret.data:
        return Kubeconfig(is_given=True, error=f"{where} has no key {key}", is_missing=True)
    return _parse(secret.data[key], f"{where}, {key}")


def _can_list(view: View, kind: str) -> bool:
    """Return False if listing Secrets is forbidden. Raises WatchNotSynced until they are listed."""
    try:
        if view.is_synced(kind):
            return True
        if FORBIDDEN in view.watch_error(kind):
            return False
    except KeyError:
        # The watch is declared by the Cluster and has not started yet.
        pass
    raise WatchNotSynced(kind)


def _remedy(namespace: str) -> str:
    return grant_remedy(names.CAPABILITY, names.KUBECONFIGS, namespace)


@lru_cache(_REMEMBERED)
def _parse(text: str, source: str) -> Kubeconfig:
    """Parse and check the kubeconfig. Cached: parsing takes a millisecond, and a plan may be made every 100 ms."""
    try:
        content = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return Kubeconfig(is_given=True, error=f"{source}: is not base64")
    if not content.strip():
        return Kubeconfig(is_given=True, error=f"{source}: is empty")
    try:
        parse_kubeconfig(content, source=source)
    except ConfigError as error:
        return Kubeconfig(is_given=True, error=str(error))
    return Kubeconfig(is_given=True, content=content)
