"""Profiles: a node belongs to several groups at once, one profile for each service, chosen by annotation."""
