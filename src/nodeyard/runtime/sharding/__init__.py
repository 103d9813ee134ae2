"""Sharding of keys over replicas: a Lease per key, assigned by rendezvous hashing."""
