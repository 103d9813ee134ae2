"""The kubeconfig of a leaf: from its Secret or from the Cluster itself, and whether it can be used.

It is read in the restricted way, as it will be when the leaf is connected: it can neither run a program here nor read a
file here, nor send us through a proxy. What is wrong with it is said without quoting it.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from functools import lru_cache
from typing import Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.snapshot import Kubeconfig
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.capabilities.clustertree.watched import secret_of
from nodeyard.client.errors import ConfigError
from nodeyard.client.kubeconfig import parse_kubeconfig
from nodeyard.kube.objects import Secret
from nodeyard.runtime.capability import View

_REMEMBERED: Final = 512


def kubeconfig_of(view: View, cluster: Cluster) -> Kubeconfig:
    place = secret_of(cluster)
    if place is None:
        return _judged(cluster.spec.kubeconfig, "spec.kubeconfig") if cluster.spec.kubeconfig else Kubeconfig()
    namespace, name = place
    where = f"Secret {namespace}/{name}"
    secret: Secret | None = view.get("Secret", name, namespace)
    if secret is None:
        error = f"{where} is not there, or is not labelled {names.LEAF_KUBECONFIG}={names.TRUE}"
        return Kubeconfig(is_given=True, error=error, is_missing=True)
    ref = cluster.spec.kubeconfig_secret_ref
    key = (ref.key if ref is not None else "") or names.KUBECONFIG_KEY
    if key not in secret.data:
        return Kubeconfig(is_given=True, error=f"{where} has no {key}", is_missing=True)
    return _judged(secret.data[key], f"{where}, {key}")


@lru_cache(_REMEMBERED)
def _judged(text: str, source: str) -> Kubeconfig:
    """Parsing takes a millisecond, and a plan is made each second: each is judged once."""
    try:
        content = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return Kubeconfig(is_given=True, error=f"{source}: is not base64")
    try:
        parse_kubeconfig(content, source=source)
    except ConfigError as error:
        return Kubeconfig(is_given=True, error=str(error))
    return Kubeconfig(is_given=True, content=content)
