"""Cluster API's core manager for a test control plane, without cert-manager.

The API server is management and workload cluster, as after a pivot, and the test simulates the providers. Webhooks and
conversions are called by URL, with certificates of this control plane's CA. The bootstrap, control plane and
infrastructure kinds are installed without their managers.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Protocol

from nodeyard.process.certificates import Authority
from nodeyard.testing import binaries, third_party_crds
from nodeyard.testing.component import Component, Site
from nodeyard.testing.ports import LOOPBACK
from nodeyard.testing.probes import is_healthy
from nodeyard.testing.rest import Rest

CORE = "cluster-api"
PROVIDERS = ("kubeadm-bootstrap", "kubeadm-control-plane", "docker", "aws", "proxmox")


class Host(Protocol):
    """Parts of a control plane that the manager needs."""

    authority: Authority

    @property
    def rest(self) -> Rest: ...


class ClusterApi(Component):
    name = "cluster-api-core"
    port_names = ("webhook", "health", "diagnostics")

    def __init__(self, site: Site, host: Host) -> None:
        super().__init__(site)
        self._host = host

    def prepare(self) -> None:
        """Install the CRDs first: the manager watches them from its start."""
        super().prepare()
        self._host.authority.server(LOOPBACK).write(self.folder, "tls")
        core = [converted_by(definition, self._client("/convert")) for definition in third_party_crds.definitions(CORE)]
        third_party_crds.install(self._host.rest, [*core, *third_party_crds.definitions(*PROVIDERS)])

    def command(self) -> list[str | Path]:
        return [
            binaries.find(self.name),
            f"--kubeconfig={self.site.kubeconfig}",
            f"--webhook-port={self.ports['webhook']}",
            f"--webhook-cert-dir={self.folder}",
            f"--health-addr={LOOPBACK}:{self.ports['health']}",
            f"--diagnostics-address={LOOPBACK}:{self.ports['diagnostics']}",
            "--insecure-diagnostics=true",
        ]

    def is_ready(self) -> bool:
        return is_healthy(self.ports["health"], "/readyz")

    def settle(self) -> None:
        """Register the webhooks last, when the manager can answer."""
        super().settle()
        for document in third_party_crds.load(CORE):
            if document["kind"] != third_party_crds.DEFINITION:
                self._host.rest.replace_or_create(self._reached_by_url(document))

    def _reached_by_url(self, configuration: dict[str, Any]) -> dict[str, Any]:
        webhooks = [
            {**webhook, "clientConfig": self._client(webhook["clientConfig"]["service"]["path"])}
            for webhook in configuration["webhooks"]
        ]
        metadata = {**configuration["metadata"], "name": f"capi-{configuration['metadata']['name']}"}
        return {**configuration, "metadata": metadata, "webhooks": webhooks}

    def _client(self, path: str) -> dict[str, str]:
        url = f"https://{LOOPBACK}:{self.ports['webhook']}{path}"
        return {"url": url, "caBundle": base64.b64encode(self._host.authority.pem).decode()}


def converted_by(definition: dict[str, Any], client: dict[str, str]) -> dict[str, Any]:
    """Return the CRD with a conversion webhook, without which writes in an old version lose fields."""
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    return {**definition, "spec": {**definition["spec"], "conversion": {"strategy": "Webhook", "webhook": webhook}}}
