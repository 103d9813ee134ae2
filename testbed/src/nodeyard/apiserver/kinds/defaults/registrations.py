"""Defaults of APIServices."""

from __future__ import annotations

from nodeyard.apiserver.kinds.defaults.filling import filling

DEFAULTS = {"io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference": filling({"port": 443})}
