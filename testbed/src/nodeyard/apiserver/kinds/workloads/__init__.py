"""Kinds that make pods from a template: the groups apps and batch."""
