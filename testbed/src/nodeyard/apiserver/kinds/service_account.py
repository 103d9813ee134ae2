"""ServiceAccounts. The token subresource is in `nodeyard.apiserver.service_accounts`."""

from __future__ import annotations

from nodeyard.apiserver.kinds.strategy import BuiltIn
from nodeyard.apiserver.resources import GroupVersionKind, Subresource

TOKEN_REQUEST = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")


class ServiceAccountStrategy(BuiltIn):
    definition = "io.k8s.api.core.v1.ServiceAccount"
    plural = "serviceaccounts"
    short_names = ("sa",)
    subresources = (Subresource("token", TOKEN_REQUEST, ("create",)),)
