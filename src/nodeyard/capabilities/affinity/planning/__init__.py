"""The steps of a plan, each by its noun."""
