"""The command line: one module per command. Heavy imports happen inside the command, so that --help stays quick."""

from __future__ import annotations

from typing import Final

KUBECONFIG_HELP: Final = "Kubeconfig file; default $KUBECONFIG, then ~/.kube/config, then the pod's service account."
CONTEXT_HELP: Final = "Kubeconfig context; default the current one."
BUNDLE_HELP: Final = "Support bundle, written by nodeyard gather, to read instead of a cluster."


def main() -> None:
    """Entry point of the console scripts `nodeyard` and `kubectl-nodeyard`."""
    from nodeyard.cli.app import run

    run()
