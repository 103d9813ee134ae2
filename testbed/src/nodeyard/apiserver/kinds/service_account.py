"""ServiceAccounts. The token subresource is in `nodeyard.apiserver.serviceaccounts`."""

from __future__ import annotations

from nodeyard.apiserver.kinds.strategy import BuiltIn


class ServiceAccountStrategy(BuiltIn):
    definition = "io.k8s.api.core.v1.ServiceAccount"
    plural = "serviceaccounts"
    short_names = ("sa",)
