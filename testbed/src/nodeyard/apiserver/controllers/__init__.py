"""The controllers that a cluster is not one without.

They empty namespaces, collect garbage, count for disruption budgets, watch over nodes and act on their taints. Each can
be switched off, as kube-controller-manager's can.
"""

from nodeyard.apiserver.controllers.manager import DEFAULT_CONTROLLERS, NAMES, Controllers, chosen

__all__ = ["DEFAULT_CONTROLLERS", "NAMES", "Controllers", "chosen"]
