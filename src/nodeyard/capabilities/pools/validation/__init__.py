"""What the API server checks of each kind before it stores one: CEL rules and limits, by field.

The rules carry the design's messages where it has them. Every list, map and string that a rule looks at is bounded:
the server works out what a rule could cost at most, and refuses a definition that could cost too much. Which label and
taint keys may reach a node is not checked here but in `validity`: it takes more than a pattern.

`rules` has the words that the others are written in; `versions`, `providers` and `clusters` are about LatticeCluster.
"""

from nodeyard.capabilities.pools.validation.classes import NODE_CLASS
from nodeyard.capabilities.pools.validation.clusters import CLUSTER
from nodeyard.capabilities.pools.validation.services import SERVICE

__all__ = ["CLUSTER", "NODE_CLASS", "SERVICE"]
