"""Collect snapshots from the informer caches, one module per kind of key.

`owners`, `placement_context` and the second half of `definitions` are lookups that keys and reviews share.
"""
