"""Steps of the plan of a node."""
