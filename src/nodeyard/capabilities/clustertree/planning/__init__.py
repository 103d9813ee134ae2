"""The steps of planning one Cluster."""
