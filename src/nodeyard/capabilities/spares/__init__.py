"""Spares: NodeTemplates claim spare nodes, configure them, repair drift and release them.

Read in this order: `types` (the API), `snapshot` (input), `plan` and `planning` (decisions), `report` (status, events,
metrics), `messages` (texts), `controller` (registration).
"""
