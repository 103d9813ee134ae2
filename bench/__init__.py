"""Benchmarks: every claim of speed, measured beside a peer in the same run."""
