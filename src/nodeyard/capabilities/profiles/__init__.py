"""Profiles: one configuration profile per service for each node, chosen by annotation or selector."""
