"""Runs the operator with affinity and an empty webhook in the same process, on the same server.

    python -m bench.admission_operator KUBECONFIG CERTIFICATES WEBHOOK_PORT HEALTH_PORT

The empty webhook decodes the review and allows it: the baseline of the others.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from nodeyard.admission.manager import Webhooks
from nodeyard.app.operator import Operation, identity, operate
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.cli import signals
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.process import logs
from nodeyard.runtime.capability import Admission, View
from nodeyard.runtime.health import Address
from nodeyard.runtime.settings import Settings
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse, Webhook, WebhookRule, allowed

HOST = "127.0.0.1"


def _admit(_review: AdmissionRequest, _view: View) -> AdmissionResponse:
    return allowed()


EMPTY = Webhook(
    name="empty",
    rules=(WebhookRule("", ("pods",), operations=("CREATE",), scope="Namespaced"),),
    review=_admit,
)


def main(kubeconfig: Path, certificates: Path, webhook_port: int, health_port: int) -> None:
    logs.configure("warning")
    address = Address(HOST, health_port)
    operation = Operation(
        load_kubeconfig([kubeconfig]),
        [replace(AFFINITY, admission=Admission((*AFFINITY.admission.webhooks, EMPTY)))],
        Settings(identity=identity()),
        install_crds=True,
        health=address,
        metrics=address,
        # Served but not registered: the benchmark sends the reviews.
        webhooks=Webhooks(
            Address(HOST, webhook_port), folder=certificates, client_authority=certificates / "callers.crt"
        ),
    )
    signals.run(operate(operation, signals.wait_for_signal))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
