"""Steps of the plan of a LatticeCluster."""
