"""Mirrors leaf clusters as nodes of the root, with their free resources and leases."""
