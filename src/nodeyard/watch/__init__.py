"""Informers and caches: the objects of a cluster, kept current by list and watch.

    client ──list, watch──▶ Reflector ──▶ Cache (objects, indexes, aggregates) ──▶ CacheView of each capability
                                            ▲
    applier ──responses to our own writes───┘  overlay, until the watch delivers them

The runtime uses `InformerFactory`, which creates and shares the informers.
"""

from nodeyard.watch.informers import InformerFactory
from nodeyard.watch.reflector import Report
from nodeyard.watch.view import CacheView

__all__ = ["CacheView", "InformerFactory", "Report"]
