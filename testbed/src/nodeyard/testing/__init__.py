"""pytest plugin, embedded server and real control plane for tests."""

from nodeyard.testing.controlplane import ControlPlane

__all__ = ["ControlPlane"]
