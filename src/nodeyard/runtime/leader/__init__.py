"""Leader election by Lease, and the write fence that stops every replica that is not the leader."""
