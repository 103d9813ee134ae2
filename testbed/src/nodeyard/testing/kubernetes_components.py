"""Components of a control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from nodeyard.testing import audit_log, binaries, third_party_crds
from nodeyard.testing.component import Component, Site
from nodeyard.testing.ports import LOOPBACK
from nodeyard.testing.probes import is_healthy, is_healthy_tls, post

SERVICE_RANGE = "10.0.0.0/16"
QUOTA_BYTES = 4 * 1024**3
FAKE_NODE = {"kwok.x-k8s.io/node": "fake"}
KWOK_LEASE_SECONDS = 40


class Etcd(Component):
    name = "etcd"
    port_names = ("client", "peer")

    def __init__(self, site: Site, *, fsync: bool = False) -> None:
        super().__init__(site)
        self._fsync = fsync
        self._member = hashlib.sha256(str(self.folder).encode()).hexdigest()[:12]

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.ports['client']}"

    def command(self) -> list[str | Path]:
        peer = f"http://{LOOPBACK}:{self.ports['peer']}"
        return [
            binaries.find("etcd"),
            f"--name={self._member}",
            f"--data-dir={self.folder / 'data'}",
            f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster={self._member}={peer}",
            f"--quota-backend-bytes={QUOTA_BYTES}",
            "--log-level=warn",
            *([] if self._fsync else ["--unsafe-no-fsync"]),
        ]

    def compact(self) -> None:
        """Compact to the current revision."""
        revision = post(self.ports["client"], "/v3/kv/range", {"key": "AA=="})["header"]["revision"]
        if not post(self.ports["client"], "/v3/kv/compaction", {"revision": revision, "physical": True}):
            raise RuntimeError(f"etcd did not compact to revision {revision}; see {self.process.log}")

    def is_ready(self) -> bool:
        if not is_healthy(self.ports["client"], "/health"):
            return False
        members = post(self.ports["client"], "/v3/cluster/member/list", {"linearizable": False})
        return any(member.get("name") == self._member for member in members.get("members", ()))


class ApiServer(Component):
    """kube-apiserver. Needs apiserver.crt, apiserver.key, tokens.csv and accounts.key in the credentials."""

    name = "kube-apiserver"

    def __init__(self, site: Site, etcd: Etcd, *, service_accounts: bool = False, audit: bool = False) -> None:
        super().__init__(site)
        self._etcd = etcd
        self._service_accounts = service_accounts
        self._audit = audit

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self.ports['serve']}"

    def command(self) -> list[str | Path]:
        files = self.site.credentials
        # Without the serviceaccount controller, namespaces lack the ServiceAccount that this plugin requires for pods.
        disabled = [] if self._service_accounts else ["--disable-admission-plugins=ServiceAccount"]
        return [
            binaries.find("kube-apiserver"),
            f"--etcd-servers={self._etcd.url}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={self.ports['serve']}",
            f"--tls-cert-file={files / 'apiserver.crt'}",
            f"--tls-private-key-file={files / 'apiserver.key'}",
            f"--client-ca-file={self.site.authority}",
            f"--token-auth-file={files / 'tokens.csv'}",
            f"--service-account-key-file={files / 'accounts.key'}",
            f"--service-account-signing-key-file={files / 'accounts.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            "--endpoint-reconciler-type=none",
            *disabled,
            *self._audit_flags(),
        ]

    def _audit_flags(self) -> list[str]:
        if not self._audit:
            return []
        policy = self.folder / "audit-policy.json"
        policy.write_text(json.dumps(audit_log.POLICY))
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}"]

    def is_ready(self) -> bool:
        return is_healthy_tls(self.ports["serve"], "/readyz", self.site.authority)


class ControllerManager(Component):
    """kube-controller-manager with the given controllers only."""

    name = "kube-controller-manager"

    def __init__(self, site: Site, controllers: Sequence[str]) -> None:
        super().__init__(site)
        self._controllers = [name if name.endswith("-controller") else f"{name}-controller" for name in controllers]

    def command(self) -> list[str | Path]:
        return [
            binaries.find("kube-controller-manager"),
            f"--kubeconfig={self.site.kubeconfig}",
            f"--controllers={','.join(self._controllers)}",
            "--leader-elect=false",
            f"--service-account-private-key-file={self.site.credentials / 'accounts.key'}",
            f"--root-ca-file={self.site.authority}",
            *_serving_flags(self),
        ]

    def is_ready(self) -> bool:
        return is_healthy_tls(self.ports["serve"], "/healthz", self.site.authority)


class Scheduler(Component):
    name = "kube-scheduler"

    def command(self) -> list[str | Path]:
        return [
            binaries.find("kube-scheduler"),
            f"--kubeconfig={self.site.kubeconfig}",
            "--leader-elect=false",
            *_serving_flags(self),
        ]

    def is_ready(self) -> bool:
        return is_healthy_tls(self.ports["serve"], "/healthz", self.site.authority)


class Kwok(Component):
    """KWOK, for nodes with the FAKE_NODE annotation: Ready, Lease and pods without kubelets, by its "fast" stages."""

    name = "kwok"

    def prepare(self) -> None:
        super().prepare()
        stages = (json.dumps(stage) for stage in third_party_crds.load("kwok-stages"))
        (self.folder / "kwok.yaml").write_text("\n---\n".join(stages))

    def command(self) -> list[str | Path]:
        selector = ",".join(f"{key}={value}" for key, value in FAKE_NODE.items())
        return [
            binaries.find("kwok"),
            f"--kubeconfig={self.site.kubeconfig}",
            f"--manage-nodes-with-annotation-selector={selector}",
            f"--node-lease-duration-seconds={KWOK_LEASE_SECONDS}",
            f"--server-address={LOOPBACK}:{self.ports['serve']}",
            f"--config={self.folder / 'kwok.yaml'}",
        ]

    def is_ready(self) -> bool:
        return is_healthy(self.ports["serve"], "/healthz")


def _serving_flags(component: Component) -> list[str]:
    """Serve health on a loopback port, with a certificate of this control plane's CA."""
    return [
        f"--bind-address={LOOPBACK}",
        f"--secure-port={component.ports['serve']}",
        f"--tls-cert-file={component.site.credentials / 'apiserver.crt'}",
        f"--tls-private-key-file={component.site.credentials / 'apiserver.key'}",
    ]
