"""Spares: NodeTemplates claim spare nodes, configure them, repair drift and release them."""
