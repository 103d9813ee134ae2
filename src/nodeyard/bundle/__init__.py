"""Support bundles: the state of a cluster in one file, without its secrets."""
