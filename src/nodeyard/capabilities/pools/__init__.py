"""Pools: named worker pools on Cluster API, and services matched to them."""
