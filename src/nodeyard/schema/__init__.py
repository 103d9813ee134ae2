"""Structural schemas, pure: what a type allows, its defaults, what is pruned, its CEL rules."""
