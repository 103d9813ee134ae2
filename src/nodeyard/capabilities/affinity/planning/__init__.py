"""The steps of planning, one module per step."""
