"""The controllers that clusters need: namespace, garbage collector, disruption, node lifecycle and taint eviction.

Each can be switched off, as in kube-controller-manager.
"""

from nodeyard.apiserver.controllers.manager import DEFAULT_CONTROLLERS, NAMES, Controllers, chosen

__all__ = ["DEFAULT_CONTROLLERS", "NAMES", "Controllers", "chosen"]
