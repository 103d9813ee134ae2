"""The pytest plugin and the real control plane."""

from nodeyard.testing.controlplane import ControlPlane

__all__ = ["ControlPlane"]
