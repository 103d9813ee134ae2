"""What is known of the cluster, kept current.

    client ──list, watch──▶ Informer ──▶ Cache (objects, indexes, aggregates) ──▶ CacheView of each capability
                                           ▲
    applier ──answers of our own writes────┘  overlay, until the watch has told them back

`Watches` puts it together and is what the runtime uses.
"""

from nodeyard.watch.informer import Report
from nodeyard.watch.view import CacheView
from nodeyard.watch.watches import Watches

__all__ = ["CacheView", "Report", "Watches"]
