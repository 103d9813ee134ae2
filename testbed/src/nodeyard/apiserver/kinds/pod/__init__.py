"""Pods: strategy, defaults, columns, and validation by part of the spec. Pod templates use all but the strategy."""
