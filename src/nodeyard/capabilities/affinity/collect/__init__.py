"""Collect snapshots from the informer caches, one module per kind of key.

`owners` and the second half of `applications` are lookups that keys and reviews share.
"""
