"""Lookups in the informer caches that snapshots, keys and reviews share."""
