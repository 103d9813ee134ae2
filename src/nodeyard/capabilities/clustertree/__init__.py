"""Leaf clusters as nodes of the root, with true free resources and leases."""
