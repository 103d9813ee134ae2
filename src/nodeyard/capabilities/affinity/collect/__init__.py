"""Collect snapshots from the informer caches, one module per kind of key.

`kinds`, `owners` and `placement_context` are lookups that the event keys and the reviews share.
"""
