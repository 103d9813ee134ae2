"""Defaults of APIServices."""

from __future__ import annotations

from nodeyard.apiserver.kinds.edits import filler

DEFAULTS = {"io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference": filler({"port": 443})}
