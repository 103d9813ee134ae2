"""KWOK: keeps annotated nodes Ready, renews their leases and moves their pods on, without kubelets."""

from __future__ import annotations

import json
from pathlib import Path

from nodeyard.testing import binaries, third_party_crds
from nodeyard.testing.component import Component
from nodeyard.testing.ports import LOOPBACK
from nodeyard.testing.probes import answers

FAKE_NODE = {"kwok.x-k8s.io/node": "fake"}
LEASE_SECONDS = 40


class Kwok(Component):
    """Cares for the nodes that carry the FAKE_NODE annotation, by the stages that its project gives as fast."""

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
            f"--node-lease-duration-seconds={LEASE_SECONDS}",
            f"--server-address={LOOPBACK}:{self.ports['serve']}",
            f"--config={self.folder / 'kwok.yaml'}",
        ]

    def is_ready(self) -> bool:
        return answers(self.ports["serve"], "/healthz")
