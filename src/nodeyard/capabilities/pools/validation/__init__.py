"""CEL rules and limits of the CRDs, by field.

Rules use the design's messages where it has them. Every list, map and string that a rule reads is bounded: the API
server estimates the cost of a rule and rejects a CRD that could exceed the budget. `node_keys` checks label and taint
keys in the webhook and the planner, because CEL is not enough for them.

`providers` and `clusters` validate LatticeCluster; `providers` has the shared fragments of schemas.
"""

from nodeyard.capabilities.pools.validation.classes import NODE_CLASS
from nodeyard.capabilities.pools.validation.clusters import CLUSTER
from nodeyard.capabilities.pools.validation.services import SERVICE

__all__ = ["CLUSTER", "NODE_CLASS", "SERVICE"]
