"""Nodeyard: one operator for a whole Kubernetes node fleet."""

__version__ = "0.1.0"
