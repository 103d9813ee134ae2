"""The steps of the plan of one Cluster, each a module named by its noun."""
